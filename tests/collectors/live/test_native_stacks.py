"""Native frames need a stop of the process: it must always end, whoever is killed meanwhile."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pardbg.collectors.live.native_stacks import MOST_RANKS, take_native_stacks
from pardbg.collectors.live.py_spy import find_py_spy
from pardbg.watchdog.model.evidence import Absence, Stack
from pardbg.watchdog.model.names import AbsenceReason
from tests.collectors.live.started import identify, python, running, wait_for

BUSY = python("import math\nwhile True: math.sqrt(2)")
pytestmark = pytest.mark.skipif(find_py_spy() is None, reason="pip install py-spy")

TAKE = """
import sys
from pardbg.collectors.live.native_stacks import take_native_stacks
from pardbg.watchdog.model.world import RankProcess
rank = RankProcess(rank=0, pid=int(sys.argv[1]), started_ticks=int(sys.argv[2]), host="a")
print("ready", flush=True)
while True:
    take_native_stacks([rank], 0)
"""


def ran_s(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def assert_it_goes_on(pid: int) -> None:
    before_s = ran_s(pid)
    wait_for(lambda: ran_s(pid) > before_s + 0.05)
    assert Path(f"/proc/{pid}/status").read_text().count("TracerPid:\t0\n") == 1


def test_native_frames_are_among_the_python_ones() -> None:
    with running(python("import time\ndef here(): time.sleep(60)\nhere()")) as pid:
        wait_for(lambda: "nanosleep" in Path(f"/proc/{pid}/wchan").read_text())
        (item,) = take_native_stacks([identify(pid, rank=4)], 1)
    stack = item.observation
    assert isinstance(stack, Stack), stack
    assert (item.rank, stack.sample, stack.is_native) == (4, 1, True)
    assert stack.main_thread is not None
    files = [frame.filename for frame in stack.main_thread.frames]
    assert any("libc" in name for name in files)
    assert "here" in {frame.name for frame in stack.main_thread.frames}


def test_only_the_first_ranks_are_taken_and_go_on() -> None:
    with running(BUSY) as one, running(BUSY) as two, running(BUSY) as three:
        found = take_native_stacks([identify(pid) for pid in (one, two, three)], 0)
        assert_it_goes_on(one)
    assert len(found) == MOST_RANKS


def test_after_the_deadline_py_spy_is_left_alone_and_lets_go() -> None:
    with running(BUSY) as pid:
        (item,) = take_native_stacks([identify(pid)], 0, deadline_s=0.0)
        assert isinstance(item.observation, Absence)
        assert item.observation.reason is AbsenceReason.TIMED_OUT
        left = re.search(r"pid (\d+)", item.observation.detail)
        assert left is not None
        wait_for(lambda: Path(f"/proc/{left[1]}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
        assert_it_goes_on(pid)


@pytest.mark.parametrize("delay_s", [0.01, 0.03, 0.06, 0.1])
def test_whoever_kills_pardbg_meanwhile_leaves_nobody_stopped(delay_s: float) -> None:
    with running(BUSY) as pid:
        command = [sys.executable, "-I", "-c", TAKE, str(pid), str(identify(pid).started_ticks)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(delay_s)
            process.send_signal(signal.SIGKILL)
        assert_it_goes_on(pid)
