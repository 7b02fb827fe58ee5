"""A worker server that answers badly, or with what this machine's torch has not: a stand-in process plays it."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.names import AbsenceReason
from tests.collectors.dumps import gloo, make_entry
from tests.collectors.live.recorder_worlds import absence_of, dump_text, reach_one, recording_of, running, started_ticks

LIST = "GET /handler/"
CPU = "POST /handler/fr_trace_json"
NCCL = "POST /handler/dump_nccl_trace_json"
GLOO_TRACE = dump_text(gloo(0, is_retired=True), gloo(1, is_retired=False))
NCCL_TRACE = dump_text(make_entry(0))
OFF = dump_text(is_on=False)
IDLE = dump_text()


@contextmanager
def server(place: str | Path, answers: dict[str, str], manner: str = "well") -> Iterator[int]:
    names = [line.rpartition("/")[2].partition("?")[0] for line in answers]
    with running("recorder_server.py", str(place), json.dumps({LIST: json.dumps(["ping", *names]), **answers}), manner) as pid:
        yield pid


def ask(pid: int, **environment: str) -> Evidence:
    return reach_one(pid, {"HOME": "/nowhere", **environment}, deadline_s=2.0)


@pytest.mark.parametrize(
    ("nccl", "cpu", "backend"),
    [(NCCL_TRACE, GLOO_TRACE, "nccl"), (OFF, GLOO_TRACE, "gloo"), (NCCL_TRACE, OFF, "nccl"), (IDLE, GLOO_TRACE, "gloo")],
)
def test_of_two_recorders_the_one_that_holds_something_counts(tmp_path: Path, nccl: str, cpu: str, backend: str) -> None:
    with server(tmp_path / "s", {NCCL: nccl, CPU: cpu}) as pid:
        assert {signature.backend for signature in recording_of(ask(pid)).signatures} == {backend}


def test_an_idle_recorder_is_a_recording_and_an_empty_one_an_absence(tmp_path: Path) -> None:
    with server(tmp_path / "idle", {CPU: IDLE}) as pid:
        assert recording_of(ask(pid)).is_switched_on
    with server(tmp_path / "off", {CPU: OFF, NCCL: OFF}) as pid:
        assert absence_of(ask(pid))[0] is AbsenceReason.EMPTY


def test_a_recorder_that_did_not_answer_is_not_replaced_by_that_of_another_back_end(tmp_path: Path) -> None:
    answers = {LIST: json.dumps(["ping", "dump_nccl_trace_json", "fr_trace_json"]), CPU: GLOO_TRACE}
    with running("recorder_server.py", str(tmp_path / "s"), json.dumps(answers), "well") as pid:
        reason, detail = absence_of(ask(pid))
        assert reason is AbsenceReason.UNREADABLE
        assert "HTTP 404" in detail


def test_a_server_on_a_tcp_port_is_found_and_no_other_port_is_touched() -> None:
    with server("tcp", {CPU: GLOO_TRACE}) as pid:
        evidence = ask(pid)
        assert len(recording_of(evidence).operations) == 2
        assert evidence.origin.startswith("http://[::1]:")
        assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"  # its decoy would have ended it


def test_a_server_without_torchs_thread_name_is_asked_only_where_the_environment_names_it(tmp_path: Path) -> None:
    with server(tmp_path / "s", {CPU: GLOO_TRACE}, "nameless") as pid:
        assert absence_of(ask(pid))[0] is AbsenceReason.UNREACHABLE
        evidence = ask(pid, TORCH_WORKER_SERVER_SOCKET=str(tmp_path / "s"))
        assert evidence.origin == f"unix:{tmp_path / 's'}/handler/fr_trace_json"


def test_a_socket_of_another_rank_is_not_sent_a_byte(tmp_path: Path) -> None:
    with server(tmp_path / "s", {CPU: GLOO_TRACE}, "nameless"):
        reason, detail = absence_of(ask(os.getpid(), TORCH_WORKER_SERVER_SOCKET=str(tmp_path / "s")))
        assert reason is AbsenceReason.UNREACHABLE
        assert "belongs to process" in detail


@pytest.mark.parametrize(
    ("manner", "reason", "slowest_s"),
    [
        ("drip", AbsenceReason.TIMED_OUT, 2.5),
        ("silent", AbsenceReason.TIMED_OUT, 2.5),
        ("flood", AbsenceReason.UNREADABLE, 2.5),
        ("not-http", AbsenceReason.UNREADABLE, 1.0),
        ("short", AbsenceReason.UNREADABLE, 1.0),
    ],
)
def test_a_server_that_answers_badly_costs_no_more_than_the_deadline(
    tmp_path: Path, manner: str, reason: AbsenceReason, slowest_s: float
) -> None:
    with server(tmp_path / "s", {CPU: GLOO_TRACE}, manner) as pid:
        began = time.monotonic()
        given = absence_of(ask(pid))[0]
        assert given is reason or (manner == "flood" and given is AbsenceReason.TIMED_OUT)
        assert time.monotonic() - began < slowest_s


def test_a_named_socket_that_is_not_there_is_said_to_be_so(tmp_path: Path) -> None:
    reason, detail = absence_of(ask(os.getpid(), TORCH_WORKER_SERVER_SOCKET=str(tmp_path / "missing")))
    assert reason is AbsenceReason.UNREACHABLE
    assert "No such file" in detail


def test_socket_of_the_ranks_own_probe_is_found_without_seeing_its_threads(tmp_path: Path) -> None:
    with server(tmp_path / "s", {CPU: GLOO_TRACE}, "nameless") as pid:
        folder = tmp_path / f"{pid}-{started_ticks(pid)}"
        folder.mkdir(mode=0o700)
        (tmp_path / "s").rename(folder / "server.sock")
        found = ask(pid, PARDBG_DIR=str(tmp_path), TORCH_WORKER_SERVER_SOCKET="/of/another/rank")
        assert recording_of(found).is_switched_on
        folder.chmod(0o755)
        assert absence_of(ask(pid, PARDBG_DIR=str(tmp_path)))[0] is AbsenceReason.UNREACHABLE
