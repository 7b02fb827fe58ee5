"""``squeue --json`` in the forms of 22.05, 23.02, 23.11 and 24.05 and later."""

import json
from typing import Any

import pytest

from pardbg.collectors.parsing.slurm_json import parse_json_jobs
from pardbg.collectors.parsing.slurm_record import SlurmRecord, SlurmState
from pardbg.watchdog.errors import ParseError


def number(value: int | None) -> dict[str, Any]:
    """As newer versions write it."""
    return {"set": value is not None, "infinite": False, "number": value or 0}


INFINITE = {"set": False, "infinite": True, "number": 0}
OLD: dict[str, Any] = {
    "job_id": 5,
    "job_state": "RUNNING",
    "array_job_id": 0,
    "array_task_id": None,
    "array_task_string": "",
    "het_job_id": 0,
    "het_job_offset": 0,
    "name": "train | JobId=7",
    "user_name": "ada",
    "user_id": 1000,
    "state_reason": "None",
    "nodes": "n[1-2]",
    "tasks": 16,
    "start_time": 1796007305,
    "end_time": 1796007905,
    "time_limit": 10,
    "exit_code": 0,
    "restart_cnt": 0,
    "standard_output": "",
}
NEW: dict[str, Any] = {
    **OLD,
    "job_state": ["RUNNING"],
    "array_job_id": number(0),
    "array_task_id": number(None),
    "het_job_id": number(0),
    "het_job_offset": number(0),
    "failed_node": "",
    "tasks": number(16),
    "start_time": number(1796007305),
    "end_time": number(1796007905),
    "time_limit": number(10),
    "exit_code": {"status": ["SUCCESS"], "return_code": number(0), "signal": {"id": number(None), "name": ""}},
    "job_resources": {"nodes": {"count": 2, "list": "n[1-2]", "allocation": [{"index": 0, "name": "n1"}]}},
}
BETWEEN = {**NEW, "job_state": "RUNNING", "start_time": 1796007305, "end_time": 1796007905, "exit_code": number(0)}


def read(job: dict[str, Any]) -> SlurmRecord:
    (record,) = parse_json_jobs(json.dumps({"meta": {}, "errors": [], "jobs": [job]}).encode())
    return record


def test_every_version_says_the_same() -> None:
    assert read(OLD) == read(BETWEEN)
    assert read(OLD).raw_state == read(NEW).raw_state == "RUNNING"
    assert read(OLD) == read(NEW)
    assert read(NEW) == SlurmRecord(
        job_id=5,
        name="train | JobId=7",
        user="ada",
        uid=1000,
        state=SlurmState.RUNNING,
        raw_state="RUNNING",
        node_list="n[1-2]",
        n_tasks=16,
        started_at="2026-11-30T02:55:05Z",
        ended_at="2026-11-30T03:05:05Z",
        time_limit_s=600,
        exit_code=0,
        restarts=0,
    )


def test_a_job_without_limit_or_start() -> None:
    waiting = read({**NEW, "job_state": ["PENDING"], "time_limit": INFINITE, "start_time": number(0), "nodes": ""})
    assert (waiting.state, waiting.time_limit_s, waiting.started_at, waiting.node_list) == (SlurmState.PENDING, None, None, "")
    assert read({**OLD, "time_limit": 4294967295}).time_limit_s is None


def test_tasks_of_an_array_in_both_forms() -> None:
    for job in (
        {**OLD, "array_job_id": 1, "array_task_id": 0},
        {**NEW, "array_job_id": number(1), "array_task_id": number(0)},
    ):
        assert (read(job).array_job_id, read(job).task_number, read(job).spelled) == (1, 0, "1_0")
    waiting = read({**NEW, "array_job_id": number(1), "array_task_string": "2-9%2"})
    assert (waiting.task_number, waiting.spelled) == (None, "1_[2-9%2]")


def test_components_of_a_het_job_and_none_where_there_is_none() -> None:
    assert read({**NEW, "het_job_id": number(2), "het_job_offset": number(1)}).spelled == "2+1"
    assert read(NEW).het_offset is None


def test_flags_beside_the_state() -> None:
    assert read({**NEW, "job_state": ["RUNNING", "CONFIGURING"]}).state is SlurmState.PENDING
    assert read({**NEW, "job_state": ["TIMEOUT", "COMPLETING"]}).state is SlurmState.TIMEOUT
    assert read({**NEW, "job_state": ["COMPLETED", "COMPLETING"]}).state is SlurmState.COMPLETING
    assert read({**NEW, "job_state": ["RUNNING", "SUSPENDED"]}).state is SlurmState.SUSPENDED
    assert read({**NEW, "job_state": []}).state is SlurmState.UNKNOWN


def test_exit_codes_and_signals_in_all_forms() -> None:
    forms: list[tuple[Any, tuple[int | None, int | None]]] = [
        (768, (3, None)),
        (9, (0, 9)),
        (number(768), (3, None)),
        ({"status": "ERROR", "return_code": 3}, (3, None)),
        ({"status": "SIGNALED", "return_code": 0, "signal": {"signal_id": 9, "name": "KILL"}}, (0, 9)),
        ({"status": ["SIGNALED"], "return_code": number(0), "signal": {"id": number(9), "name": "SIGKILL"}}, (0, 9)),
        (None, (None, None)),
    ]
    for form, expected in forms:
        record = read({**NEW, "exit_code": form})
        assert (record.exit_code, record.signal) == expected


def test_the_node_that_failed() -> None:
    assert read({**NEW, "failed_node": "n2"}).failed_nodes == "n2"


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"jobs": 1}', b'{"jobs": [{}]}', b'{"jobs": [{"job_id": {}, "job_state": 3}]}', b"\xff"]
)
def test_anything_else_is_no_answer(data: bytes) -> None:
    with pytest.raises(ParseError):
        parse_json_jobs(data)
