"""Taking hold of a thread at the moments in which it goes wrong: it loses no signal, and stays attached to nobody."""

import ctypes
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from pardbg.collectors.attach.shooting import shoot
from pardbg.collectors.attach.tracer import ShotError, Tracee, stopped
from tests.collectors.attach.started import COMPILER, Target, compiled, started

pytestmark = [
    pytest.mark.skipif(os.uname().machine != "x86_64" or os.geteuid() != 0, reason="shots are for x86_64, as root"),
]

_TGKILL = 234


def _other_thread(target: Target) -> int:
    return next(int(path.name) for path in Path(f"/proc/{target.pid}/task").iterdir() if int(path.name) != target.pid)


def _tracer(tid: int) -> str:
    """Who traces it; nobody if it has ended."""
    try:
        lines = Path(f"/proc/{tid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return "0"
    return next(line.split()[1] for line in lines if line.startswith("TracerPid"))


def test_signal_that_comes_at_the_same_moment_is_delivered() -> None:
    with started("unready.py", "gets_signals") as target:
        time.sleep(0.1)
        tid = _other_thread(target)
        tracee = Tracee(tid)
        tracee.seize()
        assert ctypes.CDLL(None).syscall(_TGKILL, target.pid, tid, int(signal.SIGUSR1)) == 0
        time.sleep(0.05)
        with pytest.raises(ShotError, match="a signal came to it"):
            tracee.hold()
        assert _tracer(tid) == "0"
        code, words = target.end()
    assert (code, words) == (0, "seen 1\n")


def test_thread_that_ends_while_it_is_taken_hold_of_is_let_go() -> None:
    with started("unready.py", "gets_signals") as target:
        time.sleep(0.1)
        tracee = Tracee(_other_thread(target))
        tracee.seize()
        time.sleep(2.4)
        with pytest.raises((ShotError, ProcessLookupError)):
            tracee.hold()
        assert target.end()[0] == 0


@pytest.mark.skipif(COMPILER is None, reason="needs cc")
def test_thread_that_cannot_stop_is_left_alone(tmp_path: Path) -> None:
    with started("unready.py", "waits_for_child", str(compiled("park", tmp_path, "-mavx2"))) as target:
        tid = _other_thread(target)
        assert shoot(target.pid, "1").why == "another process shares its memory"
        caught: list[str] = []

        def hold() -> None:
            try:
                with stopped(tid):
                    caught.append("stopped")
            except ShotError as error:
                caught.append(str(error))

        worker = threading.Thread(target=hold)
        worker.start()
        worker.join()
        assert caught == ["it does not stop"]
        until_s = time.monotonic() + 1  # the kernel's part of the thread ends a little later
        while _tracer(tid) != "0" and time.monotonic() < until_s:
            time.sleep(0.01)
        assert _tracer(tid) == "0"
        assert target.end() == (0, "")
