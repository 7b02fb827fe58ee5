"""Has a rank write its own stacks by a signal, where it does not answer since something in it holds the interpreter lock.

The probe has told faulthandler to write all stacks to a file when a certain real-time signal comes. Guards, all of which must
hold: that signal is caught (one that is not would kill), not blocked and not on its way; the main thread rests, in two looks
20 ms apart, since the handler reads its frames without the lock; and the signal goes to a thread of torch's worker server,
never to one that trains, so that no call of the training is interrupted. ``PARDBG_ATTACH=never`` forbids it.

Cost to the rank: some 1 ms of that server's thread, and a few kB more in the file, which stay. Deadline: `DEADLINE_S`.
Privilege: that of sending a signal, the job's user or root; tracing is not needed.
"""

import ctypes
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

from pardbg.collectors.live.identity import is_same_process, read_living
from pardbg.collectors.live.recorders.request import Target
from pardbg.collectors.live.recorders.server_finding import THREAD_NAME
from pardbg.collectors.live.recorders.trusted_file import RefusedError, look_at, read_file
from pardbg.collectors.parsing.fault_dump import find_fault_stack
from pardbg.collectors.procfs.signals import ThreadSignals, parse_signals
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Stack

DEADLINE_S = 1.0
_TGKILL = {"x86_64": 234, "aarch64": 131}
_RESTING = frozenset("SD")
_BETWEEN_LOOKS_S = 0.02
_MOST_BYTES = 1024 * 1024
_SLACK_S = 0.01


class NotAskedError(Exception):
    """No signal was sent, or it brought nothing; the words say why."""


def ask_by_signal(target: Target, number: int, file: bytes) -> Stack:
    """Sends the signal and reads what was written.

    Args:
        target: the rank.
        number: the signal, as its probe says.
        file: where its probe has it written.

    Raises:
        NotAskedError: if a guard does not hold, or nothing whole was written before the deadline.
    """
    if target.environment.get("PARDBG_ATTACH") == b"never":
        raise NotAskedError("PARDBG_ATTACH=never in its environment")
    try:
        _make_sure_it_rests(target)
        thread = _server_thread(target.pid)
        offset = look_at(file, target.uid, root=target.root).size_bytes
        _send(target, thread, number)
        return _await_stack(target, thread, number, (file, offset))
    except RefusedError as error:
        raise NotAskedError(error.refusal.detail) from error
    except (OSError, ParseError) as error:
        raise NotAskedError("its threads, or the file of its stacks, cannot be looked at") from error


def _make_sure_it_rests(target: Target) -> None:
    looks = []
    for pause_s in (0.0, _BETWEEN_LOOKS_S):
        time.sleep(pause_s)
        status, process = _signals(target.pid, target.pid), read_living(target.pid)
        if process is None or process.state not in _RESTING:
            raise NotAskedError("its main thread runs")
        looks.append(status.switches)
    if looks[0] != looks[1]:
        raise NotAskedError("its main thread runs")


def _server_thread(pid: int) -> int:
    """The thread of the worker server that waits for connections: it has started the others, which carry its name."""
    found = next(_server_threads(pid), None)
    if found is None:
        raise NotAskedError("it has no thread that may be sent a signal")
    return found


def _server_threads(pid: int) -> Iterator[int]:
    numbers = sorted(int(entry) for entry in os.listdir(f"/proc/{pid}/task"))  # noqa: PTH208
    return (number for number in numbers if _name(pid, number) == THREAD_NAME)


def server_switches(pid: int) -> dict[int, int]:
    """How often each thread of a process's worker server has gone to sleep so far.

    Raises:
        OSError: if the process has ended.
        ParseError: if that cannot be read.
    """
    return {thread: _signals(pid, thread).switches[0] for thread in _server_threads(pid)}


def _name(pid: int, thread: int) -> str:
    try:
        return Path(f"/proc/{pid}/task/{thread}/comm").read_text(errors="replace").strip()
    except OSError:
        return ""


def _signals(pid: int, thread: int) -> ThreadSignals:
    return parse_signals(Path(f"/proc/{pid}/task/{thread}/status").read_text(errors="replace"))


def _send(target: Target, thread: int, number: int) -> None:
    call = _TGKILL.get(platform.machine())
    if call is None:
        raise NotAskedError(f"pardbg sends no signals on {platform.machine()}")
    if not _signals(target.pid, thread).is_ready_for(number):
        raise NotAskedError("it does not catch the signal that its probe names, or has not dealt with one yet")
    handle = os.pidfd_open(target.pid)
    try:
        if not is_same_process(target.pid, target.started_ticks):
            raise NotAskedError("it has ended")
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syscall(call, target.pid, thread, number) != 0:
            raise NotAskedError(f"no signal could be sent: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(handle)


def _await_stack(target: Target, thread: int, number: int, place: tuple[bytes, int]) -> Stack:
    """While its handler runs the thread blocks the signal: when it no longer does, all has been written."""
    file, offset = place
    until_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < until_s:
        time.sleep(_SLACK_S)
        if (
            _signals(target.pid, thread).is_ready_for(number)
            and look_at(file, target.uid, root=target.root).size_bytes > offset
        ):
            added, _ = read_file(file, target.uid, most_bytes=_MOST_BYTES, offset=offset, root=target.root)
            stack = find_fault_stack(added.decode(errors="replace"))
            if stack is None:
                raise NotAskedError("the stacks that it wrote are not whole")
            return stack
    raise NotAskedError(f"it wrote no stacks within {DEADLINE_S:g} s")
