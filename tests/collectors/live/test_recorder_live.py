"""Recorders of real gloo jobs that hang."""

import importlib.util
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pardbg.collectors.live.recorders.approach import reach
from pardbg.collectors.live.recorders.reach import reach_recorders
from pardbg.collectors.live.recorders.request import Target
from pardbg.collectors.live.recorders.serial_parser import SerialParser
from pardbg.watchdog.model.names import AbsenceReason
from tests.collectors.live.recorder_worlds import absence_of, recording_of, running_ranks, state_of, world_of

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="pip install 'pardbg[demo]'"),
]
Job = tuple[list[int], list[dict[str, str]]]
OUTSTANDING = {"waiting": 1, "missing": 0}


@pytest.fixture(scope="module")
def job_with_sockets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """Rank 0 waits, rank 1 holds the GIL for ever; each has a worker server on its own socket, and has written a dump."""
    folder = tmp_path_factory.mktemp("sockets")
    environments = [
        {
            "SERVER": "socket",
            "TORCH_WORKER_SERVER_SOCKET": str(folder / f"rank{rank}.sock"),
            "TORCH_FR_DUMP_TEMP_FILE": str(folder / "dump_"),
            "WRITES_DUMP": "1",
            "HOME": str(folder),
        }
        for rank in range(2)
    ]
    environments[1]["HANG"] = "gil"
    with running_ranks(environments) as pids:
        time.sleep(0.5)
        yield pids, environments


def outstanding(evidence: object) -> int:
    return sum(not operation.is_done for operation in recording_of(evidence).operations)  # type: ignore[arg-type]


def counts(pid: int) -> tuple[int, int]:
    """Threads and open descriptors of a process."""
    return len(list(Path(f"/proc/{pid}/task").iterdir())), len(list(Path(f"/proc/{pid}/fd").iterdir()))


def test_worker_servers_are_read_also_while_the_gil_is_held(job_with_sockets: Job) -> None:
    pids, environments = job_with_sockets
    began = time.monotonic()
    waiting, missing = reach_recorders(world_of(pids, environments), 0, 3.0, time.time())
    took_s = time.monotonic() - began
    assert (outstanding(waiting), len(recording_of(waiting).operations)) == (1, 4)
    assert (outstanding(missing), len(recording_of(missing).operations)) == (0, 3)
    assert all(item.origin.endswith(".sock/handler/fr_trace_json") for item in (waiting, missing))
    assert took_s < 1.5


def test_a_server_that_no_environment_names_is_found_by_its_thread(job_with_sockets: Job) -> None:
    pids, _ = job_with_sockets
    waiting, missing = reach_recorders(world_of(pids, [{}, {}]), 0, 3.0, time.time())
    assert (outstanding(waiting), outstanding(missing)) == (1, 0)


def test_asking_many_times_leaves_the_job_as_it_was(job_with_sockets: Job) -> None:
    pids, environments = job_with_sockets
    before = [counts(pid) for pid in pids]
    for _ in range(20):
        assert all(map(recording_of, reach_recorders(world_of(pids, environments), 0, 3.0, time.time())))
    assert [counts(pid) for pid in pids] == before


def test_of_a_stopped_rank_the_dump_file_is_read_and_its_server_not_asked(job_with_sockets: Job) -> None:
    pids, environments = job_with_sockets
    os.kill(pids[0], 19)
    try:
        while state_of(pids[0]) != "T":
            time.sleep(0.01)
        began = time.monotonic()
        stopped, other = reach_recorders(world_of(pids, environments), 0, 3.0, time.time())
        assert time.monotonic() - began < 1.5
        assert stopped.origin == environments[0]["TORCH_FR_DUMP_TEMP_FILE"] + "0"
        assert len(recording_of(stopped).operations) == 3  # from before the hang, dated so
        assert other.origin.startswith("unix:")
        stopped, _ = reach_recorders(world_of(pids, [{"HOME": "/nowhere"}] * 2), 0, 3.0, time.time())
        reason, detail = absence_of(stopped)
        assert reason is AbsenceReason.UNREACHABLE
        assert "stopped" in detail
        assert state_of(pids[0]) == "T"
    finally:
        os.kill(pids[0], 18)


def test_the_dump_of_one_real_rank_is_not_taken_for_anothers(job_with_sockets: Job, tmp_path: Path) -> None:
    pids, environments = job_with_sockets
    mine = Path(environments[1]["TORCH_FR_DUMP_TEMP_FILE"] + "1").read_bytes()
    (tmp_path / "dump_0").write_bytes(mine)
    (tmp_path / "dump_1").write_bytes(mine)
    os.kill(pids[0], 19)
    os.kill(pids[1], 19)
    try:
        environment = {"TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "dump_")}
        foreign, own = reach_recorders(world_of(pids, [environment] * 2), 0, 3.0, time.time())
        assert "another process" in absence_of(foreign)[1]
        assert len(recording_of(own).operations) == 3
    finally:
        for pid in pids:
            os.kill(pid, 18)


def test_the_servers_of_torchs_debug_server_are_found_without_touching_another_port() -> None:
    environments = [{"SERVER": "debug", "HANG": "sleep"} if rank else {"SERVER": "debug"} for rank in range(2)]
    with running_ranks(environments) as pids:
        time.sleep(0.5)
        began = time.monotonic()
        waiting, missing = reach_recorders(world_of(pids, [{}, {}]), 1, 3.0, time.time())
        assert time.monotonic() - began < 1.5
        assert (outstanding(waiting), outstanding(missing)) == (1, 0)
        assert waiting.origin.startswith("http://[::1]:")
        assert waiting.origin != missing.origin


def test_a_job_that_nobody_prepared_is_unreachable_and_one_that_is_off_is_off() -> None:
    environments = [{"HOME": "/nowhere"}, {"HOME": "/nowhere", "HANG": "sleep", "TORCH_FR_BUFFER_SIZE": "0"}]
    with running_ranks(environments) as pids:
        unprepared, off = reach_recorders(world_of(pids, environments), 0, 3.0, time.time())
        assert absence_of(unprepared)[0] is AbsenceReason.UNREACHABLE
        assert absence_of(off)[0] is AbsenceReason.SWITCHED_OFF


def test_a_recorder_that_is_off_without_the_environment_saying_so_is_empty_not_idle(tmp_path: Path) -> None:
    hidden = {"SERVER": "socket", "TORCH_FR_BUFFER_SIZE": "0", "TORCH_WORKER_SERVER_SOCKET": str(tmp_path / "s")}
    with running_ranks([{**hidden, "HANG": "sleep"}]) as pids:
        (evidence,) = reach_recorders(world_of(pids, [{"HOME": "/nowhere"}]), 0, 3.0, time.time())
        assert absence_of(evidence)[0] is AbsenceReason.EMPTY


def test_another_user_is_told_what_is_denied(job_with_sockets: Job) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root to become another user")
    pids, environments = job_with_sockets
    bare, named = (world_of(pids, each, uid=0).ranks[0] for each in ([{"HOME": "/nowhere"}] * 2, environments))
    os.setegid(65534)
    os.seteuid(65534)
    try:  # in this process: the interpreter of a child may be out of that user's reach
        outcomes = [reach(Target.of(rank), SerialParser(), time.time_ns(), time.monotonic() + 3.0) for rank in (bare, named)]
    finally:
        os.seteuid(0)
        os.setegid(0)
    assert [getattr(outcome, "reason", None) for outcome in outcomes] == [AbsenceReason.DENIED] * 2
    assert "run pardbg as root" in getattr(outcomes[0], "detail", "")
