"""``squeue --json`` (and ``scontrol show job --json``) of every version since 22.05.

What has changed between them, and is read in all its forms:

| | 22.05 | 23.02 | 23.11 and on |
|---|---|---|---|
| ``job_state`` | text | text | list of texts |
| numbers | ``7``, null | ``{"set": true, "infinite": false, "number": 7}`` | the same, for more and more keys |
| times | number | number | ``{"set", ...}`` since 24.05 |
| ``exit_code`` | wait status | the same in ``{"set", ...}`` | ``{"return_code": {}, "signal": {"id": {}}}`` |

22.05 ignores ``--jobs`` beside ``--json`` and writes every job of the cluster.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from pardbg.collectors.parsing.slurm_record import SlurmRecord
from pardbg.collectors.parsing.slurm_state import read_canceller, read_state
from pardbg.collectors.parsing.slurm_values import read_number, read_text, read_time, read_wait_status
from pardbg.watchdog.errors import ParseError


class _Job(msgspec.Struct):
    """Of a hundred keys those that are used; the types differ between versions."""

    job_id: Any
    job_state: Any
    array_job_id: Any = None
    array_task_id: Any = None
    array_task_string: Any = None
    het_job_id: Any = None
    het_job_offset: Any = None
    name: Any = None
    user_name: Any = None
    user_id: Any = None
    state_reason: Any = None
    nodes: Any = None
    failed_node: Any = None
    tasks: Any = None
    start_time: Any = None
    end_time: Any = None
    time_limit: Any = None
    exit_code: Any = None
    restart_cnt: Any = None
    standard_output: Any = None


class _Answer(msgspec.Struct):
    jobs: list[_Job]


def parse_json_jobs(data: bytes) -> tuple[SlurmRecord, ...]:
    """All jobs of the answer.

    Raises:
        ParseError: if it is no JSON, or no answer about jobs.
    """
    try:
        answer = msgspec.json.decode(data, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ParseError(f"not what squeue --json writes: {error}") from None
    return tuple(map(_read_job, answer.jobs))


def _read_job(job: _Job) -> SlurmRecord:
    job_id, words = _number(job.job_id), _words(job.job_state)
    if job_id is None:
        raise ParseError("a job without job_id")
    array_job_id, het_job_id = _number(job.array_job_id) or None, _number(job.het_job_id) or None
    exit_code, signal = _exit(job.exit_code)
    minutes = _number(job.time_limit)
    return SlurmRecord(
        job_id=job_id,
        array_job_id=array_job_id,
        array_task=_array_task(job) if array_job_id else "",
        het_job_id=het_job_id,
        het_offset=_number(job.het_job_offset) if het_job_id else None,
        name=_text(job.name),
        user=_text(job.user_name),
        uid=_number(job.user_id),
        state=read_state(words),
        raw_state=",".join(words),
        reason=_text(job.state_reason),
        node_list=_text(job.nodes),
        failed_nodes=_text(job.failed_node),
        n_tasks=_number(job.tasks),
        started_at=read_time(_number(job.start_time)),
        ended_at=read_time(_number(job.end_time)),
        time_limit_s=None if minutes is None else minutes * 60,
        exit_code=exit_code,
        signal=signal,
        cancelled_by=read_canceller(" ".join(words)),
        restarts=_number(job.restart_cnt),
        log_path=_text(job.standard_output),
    )


def _number(value: Any) -> int | None:
    """A plain number, or the object that newer versions wrap it in."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    return read_number(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _words(value: Any) -> Sequence[str]:
    listed = value if isinstance(value, list) else [value]
    return [word for word in listed if isinstance(word, str)]


def _text(value: Any) -> str:
    return read_text(value) if isinstance(value, str) else ""


def _array_task(job: _Job) -> str:
    number = _number(job.array_task_id)
    return _text(job.array_task_string) if number is None else str(number)


def _exit(value: Any) -> tuple[int | None, int | None]:
    if not isinstance(value, dict) or "set" in value:
        return read_wait_status(_number(value))
    signal = value.get("signal")
    named = signal.get("id", signal.get("signal_id")) if isinstance(signal, dict) else None
    return _number(value.get("return_code")), _number(named) or None
