"""Reading all processes, on a folder of files that looks like `/proc`."""

import os
import time
from pathlib import Path

import msgspec
import pytest
from tests.collectors.jobs.processes import KERNEL_THREAD, FakeProc, absences, rank_environment

from pardbg.collectors.jobs.census import take_census
from pardbg.collectors.jobs.find import find_world
from pardbg.collectors.jobs.query import JobQuery
from pardbg.collectors.jobs.worlds import find_worlds
from pardbg.watchdog.errors import InputError

TORCH = "7f00-7f01 r-xp 0 00:00 0 /usr/lib/libc.so.6\n" * 300 + "7f02-7f03 r-xp 0 00:00 0 /x/torch/lib/libtorch_cpu.so\n"


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path / "proc")


def test_everything_that_tells_a_rank_is_read(proc: FakeProc) -> None:
    proc.add(10, 1, rank_environment(0, 1), uid=1234, namespace_pids="10\t3", maps=TORCH, mount_namespace="mnt:[7]")
    (process,) = take_census(proc.root, host="node-1").processes
    assert process.look is not None
    assert (process.pid, process.stat.started_ticks, process.look.uid) == (10, 100, 1234)
    assert (process.is_python, process.maps_torch, process.look.namespace_pids) == (True, True, (10, 3))
    (world,) = find_worlds(take_census(proc.root, host="node-1"))
    assert (world.ranks[0].host, world.ranks[0].is_at_home) == ("node-1", False)


def test_threads_of_the_kernel_and_ourselves_are_left_out(proc: FakeProc) -> None:
    proc.add(2, 0, {}, ("kthreadd",), flags=KERNEL_THREAD)
    proc.add(3, 2, {}, ("kworker/0:1",), flags=KERNEL_THREAD)
    ourselves = proc.add(4, 1, rank_environment(0, 1))
    proc.add(5, 1, rank_environment(0, 1))
    (proc.root / "self").rename(proc.root / "other")
    (proc.root / "self").symlink_to(ourselves.name)
    assert [process.pid for process in take_census(proc.root).processes] == [5]


def test_program_that_holds_an_interpreter_runs_python(proc: FakeProc) -> None:
    proc.add(10, 1, rank_environment(0, 1), ("/opt/trainer",), exe="/opt/trainer", maps="x /usr/lib/libpython3.11.so.1.0\n")
    proc.add(11, 1, rank_environment(0, 1), ("/opt/other",), exe="/opt/other")
    proc.add(12, 1, {}, ("/opt/wrapped",), exe="/usr/bin/python3.12 (deleted)")
    assert [process.is_python for process in take_census(proc.root).processes] == [True, False, True]


def test_memory_map_is_read_of_possible_ranks_only(proc: FakeProc) -> None:
    proc.add(10, 1, {}, maps=TORCH)
    proc.add(11, 1, rank_environment(0, 1), maps=TORCH)
    proc.add(12, 11, rank_environment(0, 1), maps=TORCH)
    looks = [process.look for process in take_census(proc.root).processes]
    assert [look.maps_torch for look in looks if look] == [None, True, None]


@pytest.mark.parametrize("name", ["environ", "cmdline"])
def test_processes_that_do_not_answer_cost_one_deadline_and_nobody_else(name: str, proc: FakeProc) -> None:
    """Whoever opens a FIFO without a writer waits for ever, like whoever reads a locked memory."""
    for rank in range(30):
        folder = proc.add(10 + rank, 1, rank_environment(rank, 30))
        if rank < 20:
            (folder / name).unlink()
            os.mkfifo(folder / name)
    started_s = time.monotonic()
    census = take_census(proc.root, silence_s=0.4)
    assert time.monotonic() - started_s < 3
    assert [process.pid for process in census.processes if process.is_silent] == list(range(10, 30))
    assert absences(census.evidence) == [(None, "timed-out")] * 20
    assert "process 10 (python, state S)" in str(census.evidence[0].observation)


def test_processes_that_end_meanwhile_or_make_no_sense_are_left_out(proc: FakeProc) -> None:
    (proc.add(10) / "status").unlink()
    (proc.add(11) / "stat").write_text("nonsense")
    (proc.add(12) / "status").write_text("nonsense")
    (proc.root / "13").mkdir()
    proc.add(14)
    census = take_census(proc.root)
    assert [process.pid for process in census.processes] == [14]
    assert census.evidence == ()


def test_machine_that_shows_no_processes_has_none(proc: FakeProc) -> None:
    census = take_census(proc.root)
    assert (census.processes, census.evidence) == ((), ())
    with pytest.raises(InputError):
        find_world(JobQuery(), proc=proc.root)


def test_five_hundred_processes_take_a_moment(proc: FakeProc) -> None:
    """The best of three: the machine is shared, and a child process is started each time."""
    for pid in range(10, 510):
        proc.add(pid, 1, rank_environment(pid - 10, 500) | {f"NAME_{index}": "x" * 40 for index in range(50)}, maps=TORCH)
    times = []
    for _ in range(3):
        started_s = time.perf_counter()
        job = find_world(JobQuery(), proc=proc.root)
        times.append(time.perf_counter() - started_s)
    assert len(job.world.ranks) == 500
    assert min(times) < 1.0  # 0.25 s where nothing else runs


def test_secrets_leave_the_reading_process_nowhere(proc: FakeProc) -> None:
    environment = rank_environment(0, 1, API_TOKEN="hunter2", RANKS="hunter2", NCCL_TIMEOUT="hunter2")  # noqa: S106
    proc.add(10, 1, environment, ("python", "train.py", "--password", "hunter2"))
    census = take_census(proc.root)
    job = find_world(JobQuery(), proc=proc.root)
    assert b"hunter2" not in msgspec.json.encode((census, job))
