"""Stacks of real processes: whatever state they are in, and whatever refuses the look."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from pardbg.collectors.live.host import look_at_processes
from pardbg.collectors.live.identity import is_same_process
from pardbg.collectors.live.py_spy import PySpyRun, find_py_spy
from pardbg.collectors.live.py_spy_errors import explain_failure
from pardbg.collectors.live.stacks import take_stacks
from pardbg.watchdog.model.evidence import Absence, Evidence, Stack, Thread
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from tests.collectors.live.started import identify, python, running, wait_for
from tests.own_children import are_soon_gone, living_children

SECRET = "planted-secret-4711"  # noqa: S105 - it must appear nowhere
pytestmark = pytest.mark.skipif(find_py_spy() is None, reason="pip install py-spy")


def is_asleep(pid: int, channel: str) -> bool:
    return channel in Path(f"/proc/{pid}/wchan").read_text()


def main_thread(evidence: list[Evidence]) -> Thread:
    stack = evidence[0].observation
    assert isinstance(stack, Stack), stack
    assert stack.main_thread is not None
    return stack.main_thread


def absence(evidence: list[Evidence]) -> Absence:
    (item,) = evidence
    assert isinstance(item.observation, Absence), item
    assert item.source is CollectorName.STACKS
    return item.observation


@pytest.mark.parametrize(
    ("code", "channel", "is_active", "owns_gil"),
    [
        ("import time\ndef here(): time.sleep(60)\nhere()", "nanosleep", False, False),
        ("import ctypes\ndef here(): ctypes.PyDLL(None).sleep(60)\nhere()", "nanosleep", False, True),
        ("import ctypes\ndef here(): ctypes.CDLL(None).sleep(60)\nhere()", "nanosleep", False, False),
        ("import _thread\nl = _thread.allocate_lock()\nl.acquire()\ndef here(): l.acquire()\nhere()", "futex", False, False),
    ],
    ids=["sleeper", "gil-holder", "sleeper-in-c", "lock"],
)
def test_a_thread_that_waits_is_idle_and_holds_the_gil_only_if_it_does(
    code: str, channel: str, *, is_active: bool, owns_gil: bool
) -> None:
    with running(python(code)) as pid:
        wait_for(lambda: is_asleep(pid, channel))
        main = main_thread(take_stacks([identify(pid, rank=2)], 1))
    assert (main.name, main.is_active, main.owns_gil) == ("MainThread", is_active, owns_gil)
    assert main.frames[0].name == "here"


def test_a_busy_loop_is_active_and_a_stopped_one_is_still_read() -> None:
    with running(python("def here():\n    while True: pass\nhere()")) as pid:
        wait_for(lambda: "here" in {frame.name for frame in main_thread(take_stacks([identify(pid)], 0)).frames})
        busy = main_thread(take_stacks([identify(pid)], 0))
        os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: is_asleep(pid, "do_signal_stop"))
        stopped = main_thread(take_stacks([identify(pid)], 0))
        assert is_asleep(pid, "do_signal_stop")
    assert (busy.is_active, busy.owns_gil, stopped.is_active) == (True, True, False)
    assert stopped.frames[0].name == "here"


def old_python() -> Path | None:
    found = sorted(Path("/root/.pyenv/versions").glob("3.10*/bin/python")) if os.getuid() == 0 else []
    return next(iter(found), None)


@pytest.mark.skipif(old_python() is None, reason="no Python 3.10 here")
def test_a_sleeper_of_an_old_python_is_not_active() -> None:
    with running([str(old_python()), *python("import time, threading; time.sleep(60)")[1:]]) as pid:
        wait_for(lambda: is_asleep(pid, "poll_schedule"))
        main = main_thread(take_stacks([identify(pid)], 0))
    assert (main.name, main.is_active, main.owns_gil) == ("MainThread", False, False)


def test_all_ranks_come_back_in_order_with_their_sample() -> None:
    with running(python()) as one, running(python()) as two, running(python()) as three:
        wait_for(lambda: all(is_asleep(pid, "nanosleep") for pid in (one, two, three)))
        found = take_stacks([identify(pid, rank=rank) for rank, pid in enumerate((one, two, three))], 1)
    assert [(item.rank, item.observation.sample) for item in found if isinstance(item.observation, Stack)] == [
        (0, 1),
        (1, 1),
        (2, 1),
    ]
    assert {(item.source, item.host) for item in found} == {(CollectorName.STACKS, "node1")}


def test_forked_children_come_under_the_rank_of_their_parent() -> None:
    code = (
        "import os, time, subprocess\ndef work(): time.sleep(60)\nif os.fork(): subprocess.run(['sleep', '60'])\nelse: work()"
    )
    with running(python(code)) as pid:
        wait_for(lambda: len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()) == 2)
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        wait_for(lambda: all(is_asleep(child, "nanosleep") for child in children))
        rank = identify(pid, rank=7)
        found = take_stacks([rank], 0, look_at_processes([rank], 0))
        for child in children:
            os.kill(child, signal.SIGKILL)
    stacks = [item.observation for item in found if isinstance(item.observation, Stack)]
    assert len(stacks) == len(found)
    assert [item.rank for item in found] == [7, 7]
    assert [stack.child.rpartition(" ")[2] for stack in stacks] == ["", str(children[0])]
    assert "work" in {frame.name for thread in stacks[1].threads for frame in thread.frames}


def test_what_ended_or_was_replaced_is_gone() -> None:
    with running(python()) as pid:
        rank = identify(pid)
        assert absence(take_stacks([replace(rank, started_ticks=1)], 0)).reason is AbsenceReason.GONE
    assert absence(take_stacks([rank], 0)).reason is AbsenceReason.GONE


def test_a_program_that_is_not_python_is_unsupported() -> None:
    with running(["/bin/sleep", "60"]) as pid:
        wait_for(lambda: is_asleep(pid, "nanosleep"))
        assert absence(take_stacks([identify(pid)], 0)).reason is AbsenceReason.UNSUPPORTED


def test_without_py_spy_there_is_one_absence_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setenv("PATH", "/nowhere")
    found = absence(take_stacks([identify(os.getpid())], 0))
    assert found.reason is AbsenceReason.NOT_INSTALLED
    assert "pip install py-spy" in found.detail


def test_no_stack_before_the_deadline_is_timed_out_and_leaves_no_py_spy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "py-spy"  # the real one may answer before the first look, however short the deadline
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    before = living_children()
    assert absence(take_stacks([identify(os.getpid())], 0, deadline_s=0.3)).reason is AbsenceReason.TIMED_OUT
    assert are_soon_gone(before)


INTERRUPTED = """
import sys
from pathlib import Path
from pardbg.collectors.live.stacks import take_stacks
from pardbg.watchdog.model.world import RankProcess
rank = RankProcess(rank=0, pid=int(sys.argv[1]), started_ticks=int(sys.argv[2]), host="a")
try:
    print("ready", flush=True)
    take_stacks([rank] * 500, 0)
except KeyboardInterrupt:
    print(Path("/proc/thread-self/children").read_text())
"""


@pytest.mark.parametrize("delay_s", [0.0, 0.004, 0.011, 0.017, 0.05])
def test_an_interrupted_run_leaves_no_py_spy(delay_s: float) -> None:
    with running(python()) as pid:
        command = [sys.executable, "-I", "-c", INTERRUPTED, str(pid), str(identify(pid).started_ticks)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(delay_s)
            process.send_signal(signal.SIGINT)
            assert process.stdout.read().split() == []
    assert process.returncode == 0


def test_planted_secrets_appear_nowhere() -> None:
    body = f"op = {{'kwargs': '{SECRET}'}}; time.sleep(60)"
    code = f"import time\ndef here(group, src, tag='{SECRET}'): {body}\nhere('{SECRET}', '{SECRET}')"
    with running(python(code)) as pid:
        wait_for(lambda: is_asleep(pid, "nanosleep"))
        found = take_stacks([identify(pid)], 0)
    assert main_thread(found).frames[0].name == "here"
    assert SECRET not in repr(found)


@pytest.mark.skipif(os.getuid() != 0, reason="needs namespaces")
def test_a_process_in_its_own_namespaces_is_read() -> None:
    with running(["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", *python()]) as outer:
        children = Path(f"/proc/{outer}/task/{outer}/children")
        wait_for(lambda: bool(children.read_text().split()))
        pid = int(children.read_text().split()[0])
        wait_for(lambda: is_asleep(pid, "nanosleep"))
        assert main_thread(take_stacks([identify(pid)], 0)).frames


SECCOMP = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
class Line(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint32)]
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("lines", ctypes.POINTER(Line))]
load, allow, refuse = Line(0x20, 0, 0, 0), Line(0x06, 0, 0, 0x7FFF0000), Line(0x06, 0, 0, 0x00050001)
lines = (Line * 5)(load, Line(0x15, 2, 0, 101), Line(0x15, 1, 0, 310), allow, refuse)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(5, lines)), 0, 0) == 0
"""

TAKE = """
from pardbg.collectors.live.native_stacks import take_native_stacks
from pardbg.collectors.live.stacks import take_stacks
from pardbg.watchdog.model.world import RankProcess
assert libc.process_vm_readv(1, None, 0, None, 0, 0) == -1 and ctypes.get_errno() == 1
rank = RankProcess(rank=0, pid=int(sys.argv[1]), started_ticks=int(sys.argv[2]), host="a")
for (item,) in (take_stacks([rank], 0), take_native_stacks([rank], 0)):
    print(item.observation)
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the filter knows numbers of one machine")
def test_under_a_seccomp_profile_without_ptrace_python_is_read_and_native_frames_are_denied() -> None:
    with running(python()) as pid:
        wait_for(lambda: is_asleep(pid, "nanosleep"))
        command = [sys.executable, "-I", "-c", SECCOMP + TAKE, str(pid), str(identify(pid).started_ticks)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    python_frames, native_frames = done.stdout.splitlines()
    assert python_frames.startswith("Stack(")  # py-spy then reads /proc/PID/mem
    assert native_frames.startswith("Absence(")
    assert "DENIED" in native_frames
    assert "SYS_PTRACE" in native_frames


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_the_process_of_somebody_else_is_denied(tmp_path: Path) -> None:
    program = shutil.copy(find_py_spy() or "", tmp_path / "py-spy")  # where the stranger may start it
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and not folder.stat().st_mode & 0o1:
            folder.chmod(folder.stat().st_mode | 0o111)
    with running(python()) as pid:
        wait_for(lambda: is_asleep(pid, "nanosleep"))
        done = subprocess.run(
            [program, "dump", "--json", "--nonblocking", "--pid", str(pid)],
            user=65534,
            capture_output=True,
            text=True,
            check=False,
        )
        assert is_same_process(pid, identify(pid).started_ticks)
    assert explain_failure(done.stderr).reason is AbsenceReason.DENIED, done.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("Permission Denied: Try running again with elevated permissions by going 'sudo env ...'", AbsenceReason.DENIED),
        ("Error: Operation not permitted (os error 1)", AbsenceReason.DENIED),
        ("Error: Failed to find python version from target process", AbsenceReason.UNSUPPORTED),
        ("Error: Unsupported version of Python: 3.19.0", AbsenceReason.UNSUPPORTED),
        ("Error: Unsupported version of Python: 7.32.183", AbsenceReason.UNREADABLE),
        ("Error: Failed to suspend process", AbsenceReason.UNREADABLE),
        ("thread panicked at secret", AbsenceReason.UNREADABLE),
        ("", AbsenceReason.UNREADABLE),
    ],
)
def test_py_spys_words_become_a_reason_and_are_not_repeated(words: str, reason: AbsenceReason) -> None:
    found = explain_failure(words)
    assert found.reason is reason
    assert "secret" not in found.detail


def test_looking_causes_no_switch_of_a_sleeper() -> None:
    with running(python()) as pid:
        wait_for(lambda: is_asleep(pid, "nanosleep"))
        before = Path(f"/proc/{pid}/status").read_text().splitlines()[-2:]
        for _ in range(10):
            take_stacks([identify(pid)], 0)
        assert Path(f"/proc/{pid}/status").read_text().splitlines()[-2:] == before


@pytest.mark.slow
def test_three_hundred_looks_leave_a_busy_process_running() -> None:
    with running(python("def f(n):\n    return [str(i) for i in range(n)]\nwhile True: f(50)")) as pid:
        rank = identify(pid)
        found = [item for number in range(300) for item in take_stacks([rank], number)]
        wait_for(lambda: Path(f"/proc/{pid}/stat").read_text().split()[2] == "R")
    assert sum(isinstance(item.observation, Stack) for item in found) >= 295


def test_a_run_left_alone_is_not_killed() -> None:
    program = find_py_spy()
    assert program is not None
    with running(python()) as pid:
        wait_for(lambda: is_asleep(pid, "nanosleep"))
        run = PySpyRun(program, pid, "--nonblocking")
        run.leave()
        wait_for(run.has_ended)
        time.sleep(0)
    assert run.exit_code == 0
