"""Processes and threads that nobody may shoot at, and shots that have to wait: all of them end as they would have ended."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pardbg.collectors.attach.shooting import shoot
from tests.collectors.attach.started import COMPILER, TARGETS, Target, compiled, started

pytestmark = [
    pytest.mark.skipif(os.uname().machine != "x86_64" or os.geteuid() != 0, reason="shots are for x86_64, as root"),
]

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs cc")
HOLDER = """
import sys, threading, time
from pardbg.collectors.attach.tracer import stopped
with stopped(int(sys.argv[1])):
    print("ready", flush=True)
    sys.stdin.read()
"""
SHOOTER = "import sys; from pardbg.collectors.attach.shooting import shoot; print(shoot(int(sys.argv[1]), '1').why)"
REFUSE_PTRACE = Path(__file__).parents[2] / "live" / "refuse_ptrace.py"


def _appends(path: Path) -> str:
    return f"open({str(path)!r}, 'a').write('x')"


def _refused(target: Target) -> str:
    outcome = shoot(target.pid, "1")
    assert outcome.shot is None, outcome
    return outcome.why


@pytest.mark.parametrize("seconds", ["3.5", pytest.param("10", marks=pytest.mark.slow)])
def test_shot_waits_for_the_interpreter_lock_and_runs_once_it_is_free(seconds: str, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    with started("unready.py", "holds", seconds) as target:
        outcome = shoot(target.pid, _appends(ran))
        assert outcome.shot is not None
        assert not outcome.is_done
        assert not ran.exists()
        whys = [_refused(target) for _ in range(5)]  # a shot that waits wakes every 5 ms: now and then it is only seen to move
        assert "an earlier shot still waits for the interpreter lock" in whys
        assert target.end() == (0, "")
    assert ran.read_text() == "x"


def test_thread_that_waits_for_the_interpreter_lock_is_refused() -> None:
    with started("unready.py", "wait_for_interpreter", "1") as target:
        time.sleep(0.2)
        why = _refused(target)
        assert "it waits for the interpreter lock" in why or "it moves" in why
        assert target.end() == (0, "")


def test_interpreter_lock_that_is_never_freed_leaves_the_shot_waiting_and_a_kill_ends_all(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    with started("unready.py", "holds", "1000") as target:
        outcome = shoot(target.pid, _appends(ran))
        assert outcome.shot is not None
        assert not outcome.is_done
        target.process.terminate()
        assert target.end()[0] == -signal.SIGTERM
    assert not ran.exists()


def test_main_thread_is_never_borrowed() -> None:
    with started("unready.py", "alone") as target:
        time.sleep(0.1)
        assert _refused(target) == "no thread may be borrowed: its main thread runs the program's signal handlers"
        assert target.end() == (0, "")


def test_thread_in_a_signal_handler_is_refused() -> None:
    with started("unready.py", "handles_signal") as target:
        assert "it handles a signal" in _refused(target)
        assert target.end() == (0, "")


def test_process_whose_interpreter_has_ended_is_refused() -> None:
    with started("unready.py", "ends") as target:
        time.sleep(0.5)
        assert _refused(target) == "its interpreter is not up, or is ending"
        target.process.terminate()
        assert target.end()[0] == -signal.SIGTERM


@needs_compiler
def test_process_that_loads_a_library_is_refused_until_it_has(tmp_path: Path) -> None:
    libraries = [str(compiled(name, tmp_path, "-mavx2")) for name in ("park", "slow")]
    with started("unready.py", "loads", *libraries) as target:
        assert _refused(target) == "one of its threads loads a library"
        until_s = time.monotonic() + 20
        while not shoot(target.pid, "1").is_done:
            assert time.monotonic() < until_s
            time.sleep(0.1)
        assert target.end() == (0, "")


@needs_compiler
def test_thread_that_waits_for_a_mutex_is_refused(tmp_path: Path) -> None:
    with started("unready.py", "waits_for_mutex", str(compiled("park", tmp_path, "-mavx2"))) as target:
        assert "it waits for a mutex" in _refused(target)
        assert target.end() == (0, "")


@needs_compiler
def test_worker_for_which_others_wait_with_the_interpreter_lock_held_is_refused(tmp_path: Path) -> None:
    """Both would wait for ever: such threads have OpenBLAS, OpenMP, and programs in C++."""
    with started("unready.py", "computes", str(compiled("park", tmp_path, "-mavx2"))) as target:
        time.sleep(0.1)
        for _ in range(5):
            assert _refused(target).startswith("no thread may be borrowed")
        assert target.end() == (0, "done 30\n")


def test_thread_of_python_that_runs_no_python_is_refused() -> None:
    with started("unready.py", "watches") as target:
        time.sleep(0.1)
        assert "it is none that takes the interpreter lock by itself" in _refused(target)
        assert target.end() == (0, "")


@needs_compiler
def test_stopped_thread_that_may_hold_the_lock_of_the_allocator_is_a_reason_to_refuse(tmp_path: Path) -> None:
    library = str(compiled("park", tmp_path, "-mavx2"))
    with started("unready.py", "allocates", library, prefix=["env", "MALLOC_ARENA_MAX=1"]) as target:
        running = [tid for tid in _threads(target) if "State:\tR" in Path(f"/proc/{tid}/status").read_text()]
        assert len(running) == 1
        for _ in range(3):
            with started(sys.executable, "-c", HOLDER, str(running[0])) as holder:
                assert _refused(target) == f"process {holder.pid} traces it"
                assert holder.end() == (0, "")
            assert shoot(target.pid, "[bytes(100) for _ in range(1000)]").is_done
        assert target.end() == (0, "")


@needs_compiler
def test_process_that_waits_for_its_child_and_the_child_that_has_its_memory_are_refused(tmp_path: Path) -> None:
    with started("unready.py", "is_in_child_of_vfork", str(compiled("park", tmp_path, "-mavx2"))) as target:
        time.sleep(0.2)
        assert _refused(target) == "it is in an uninterruptible call"
        (child,) = Path(f"/proc/{target.pid}/task/{target.pid}/children").read_text().split()
        assert shoot(int(child), "1").why == "another process shares its memory"
        assert target.end() == (0, "")


@pytest.mark.parametrize(
    ("hierarchy", "file", "frozen", "thawed", "why"),
    [
        ("freezer", "freezer.state", "FROZEN", "THAWED", "it is in an uninterruptible call"),
        ("unified", "cgroup.freeze", "1", "0", "it is frozen"),
        (".", "cgroup.freeze", "1", "0", "it is frozen"),
    ],
)
def test_frozen_process_is_refused_and_goes_on(hierarchy: str, file: str, frozen: str, thawed: str, why: str) -> None:
    group = Path("/sys/fs/cgroup", hierarchy, "pardbg-test-frozen")
    try:
        group.mkdir()
    except OSError:
        pytest.skip("no such control groups here")
    try:
        with started("unready.py", "parked") as target:
            if not (group / file).exists():
                pytest.skip("no such control groups here")
            (group / "cgroup.procs").write_text(str(target.pid))
            (group / file).write_text(frozen)
            time.sleep(0.2)
            assert _refused(target) == why
            assert "TracerPid:\t0" in Path(f"/proc/{target.pid}/status").read_text()
            (group / file).write_text(thawed)
            assert target.end() == (0, "")
    finally:
        with contextlib.suppress(OSError):
            (group / file).write_text(thawed)
        time.sleep(0.1)
        with contextlib.suppress(OSError):
            group.rmdir()


def _threads(target: Target) -> list[int]:
    return [int(path.name) for path in Path(f"/proc/{target.pid}/task").iterdir()]


def test_small_stack_is_refused() -> None:
    with started("unready.py", "small_stacks") as target:
        time.sleep(0.2)
        assert "KiB left, and a shot may need 512" in _refused(target)
        assert target.end() == (0, "")


def test_stopped_process_is_refused_and_goes_on() -> None:
    with started("unready.py", "parked") as target:
        target.process.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        assert _refused(target) == "it is stopped"
        target.process.send_signal(signal.SIGCONT)
        assert target.end() == (0, "")


def test_process_with_one_thread_that_somebody_holds_is_refused() -> None:
    """That thread may hold the lock of the memory allocator."""
    with started("counting.py") as target:
        tid = next(int(path.name) for path in Path(f"/proc/{target.pid}/task").iterdir() if int(path.name) != target.pid)
        with started(sys.executable, "-c", HOLDER, str(tid)) as holder:
            assert _refused(target) == f"process {holder.pid} traces it"
            assert holder.end() == (0, "")
        assert target.end() == (0, "right\n")


def test_zombie_and_process_that_has_gone_are_refused() -> None:
    with started(sys.executable, "-c", "print('ready')") as target:
        until_s = time.monotonic() + 10
        while "State:\tZ" not in Path(f"/proc/{target.pid}/status").read_text() and time.monotonic() < until_s:
            time.sleep(0.01)
        assert _refused(target) == "it has ended"
        target.end()
        assert _refused(target) == "it has ended"


@pytest.mark.parametrize("command", [("sh", "-c", "echo ready; sleep 1; true"), ("sh", "-c", "echo ready; exec sleep 1")])
def test_what_is_no_python_is_refused(command: tuple[str, ...]) -> None:
    with started(*command) as target:
        time.sleep(0.1)
        assert _refused(target) == "it is no CPython, or one that hides its functions"
        assert target.end() == (0, "")


def test_older_python_is_refused() -> None:
    python = Path("/root/.pyenv/versions/3.9.18/bin/python")
    if not python.exists():
        pytest.skip("no Python 3.9")
    with started(str(python), "-c", "import time; print('ready', flush=True); time.sleep(1)") as target:
        assert _refused(target).startswith("Python 3.9 is none of those")
        assert target.end() == (0, "")


@pytest.mark.skipif(not REFUSE_PTRACE.exists(), reason="no filter")
def test_shooter_that_may_not_trace_does_nothing() -> None:
    with started("unready.py", "parked") as target:
        time.sleep(0.2)
        command = [sys.executable, str(REFUSE_PTRACE), "-c", SHOOTER, str(target.pid)]
        told = subprocess.run(command, capture_output=True, text=True, check=True)
        assert told.stdout == "the kernel refuses: Operation not permitted\n", told.stderr
        assert target.end() == (0, "")


@pytest.mark.skipif(not REFUSE_PTRACE.exists(), reason="no filter")
def test_process_whose_system_calls_are_filtered_is_shot_at_as_others() -> None:
    with started(sys.executable, str(REFUSE_PTRACE), str(TARGETS / "unready.py"), "parked") as target:
        time.sleep(0.1)
        assert "Seccomp:\t2" in Path(f"/proc/{target.pid}/status").read_text()
        assert shoot(target.pid, "1").is_done
        assert target.end() == (0, "")
