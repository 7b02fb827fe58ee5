"""One shot: a few lines of Python, run by a parked thread of another process, which is then as it was.

Cost: one thread stands still for 0.2 to 1.1 ms, and runs the lines before it goes on with its call. Up to the one change of its
registers nothing has happened; after it nothing depends on us: this process may be killed at any moment. Nothing is mapped,
opened or loaded for it. What a kill between the stop and that change leaves is that of any stop: `epoll_wait`, and calls on
sockets with a time limit, return EINTR, for which programs have to be ready. x86_64 only. Deadline: that of `tracer.py`.
Privilege: that of tracing the process, and of writing to its memory.
"""

import errno
import os
import struct
import threading
import time
from contextlib import suppress
from pathlib import Path

from pardbg.collectors.attach.chain import SPARE_BYTES, TIME_DEPTH, Functions, Saved, lay_chain
from pardbg.collectors.attach.memory import TargetMemory, opened
from pardbg.collectors.attach.parking import REPEATABLE, ThreadLook
from pardbg.collectors.attach.registers import SYSCALL_BYTES, Registers, arguments, signed
from pardbg.collectors.attach.stack_bounds import DESCRIPTOR_BYTES, stack_bottom
from pardbg.collectors.attach.thread_status import parse_thread_status
from pardbg.collectors.attach.tracer import ShotError, Tracee, stopped
from pardbg.collectors.attach.waiting_time import shorten
from pardbg.collectors.procfs.system_calls import CALLS
from pardbg.watchdog.model.base import Noun

_RESTARTS = frozenset({512, 513, 514, 516})  # the kernel's own codes for "enter again"
_SYSCALL = b"\x0f\x05"
_TIME_BYTES, _ERRNO_BYTES = 16, 4
_LONG_MODE = 0x33


class Shot(Noun, frozen=True, kw_only=True):
    """A shot that was fired. ``stopped_s``: for how long the thread stood still."""

    look: ThreadLook
    stopped_s: float


class Aim(Noun, frozen=True, kw_only=True):
    """Whom a shot is for.

    Attributes:
        pid: the process.
        look: where the thread was seen; if it is elsewhere by now, or was meanwhile, nothing is done.
        waited_ns: for how long it had been in its call by then.
        errno_offset: from a thread's pointer to its errno, None if that is not known.
    """

    pid: int
    look: ThreadLook
    waited_ns: int
    errno_offset: int | None = None


def fire(aim: Aim, functions: Functions, code: str) -> Shot:
    """Makes a thread run the code. In a thread of ours that ends with it, so that nothing stays attached.

    Args:
        aim: whom it is for.
        functions: addresses in the process.
        code: Python source.

    Raises:
        ShotError: if nothing was done.
        OSError: if the kernel refuses. Nothing was done either.
    """
    outcome: list[Shot | Exception] = []

    def work() -> None:
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))  # of this thread: the other stands still meanwhile
        try:
            outcome.append(_fire(aim, functions, code.encode() + b"\0"))
        except Exception as error:  # noqa: BLE001 - it is raised by whoever waits for this thread
            outcome.append(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join()
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]


def _fire(aim: Aim, functions: Functions, source: bytes) -> Shot:
    with opened(aim.pid, writable=True) as memory:
        began_s = time.perf_counter()
        with stopped(aim.look.tid) as tracee:
            now = tracee.registers()
            try:
                _check(now, aim, memory)
                back = _call_again(now, aim, memory)
                laid = lay_chain(now, _save(now, back, aim, tracee, memory), functions, source)
                memory.write(laid.at, laid.data)
            except (ShotError, OSError):
                _let_go_on(now, aim, tracee)
                raise
            tracee.start(laid.start)
        return Shot(look=aim.look, stopped_s=time.perf_counter() - began_s)


def _check(now: Registers, aim: Aim, memory: TargetMemory) -> None:
    """That it still sleeps in the same call, that nothing else has come to it, and that its stack has the room."""
    look, number = aim.look, signed(now["orig_rax"])
    is_same = (now["rip"], now["rsp"], arguments(now)) == (look.program, look.stack, look.arguments)
    if not is_same or CALLS["x86_64"].get(number) != look.call:
        raise ShotError("it has moved on")
    status = parse_thread_status(Path(f"/proc/{aim.pid}/task/{look.tid}/status").read_text(errors="replace"))
    if status.switches != look.switches + 1:  # the stop is one
        raise ShotError("it has moved on")
    if status.has_signal:
        raise ShotError("a signal came to it")
    if now["cs"] != _LONG_MODE or memory.read(now["rip"] - SYSCALL_BYTES, SYSCALL_BYTES) != _SYSCALL:
        raise ShotError("it has not entered its call as programs of 64 bits do")
    bottom = stack_bottom(memory.read(now["fs_base"], DESCRIPTOR_BYTES), now["fs_base"], now["rsp"])
    if bottom is None:
        raise ShotError("it is not on a stack of its own")
    if now["rsp"] - bottom < SPARE_BYTES:
        raise ShotError(f"its stack has {(now['rsp'] - bottom) // 1024} KiB left, and a shot may need {SPARE_BYTES // 1024}")


def _call_again(now: Registers, aim: Aim, memory: TargetMemory) -> Registers:
    """The registers with which the thread enters its call again, for what is left of its waiting time."""
    code = -signed(now["rax"])
    if code not in _RESTARTS and code != errno.EINTR:
        raise ShotError("its call has just ended")
    again = shorten(aim.look.call, now, aim.waited_ns, lambda address: _read_time(memory, address))
    back = {**now, **again.registers, "rip": now["rip"] - SYSCALL_BYTES, "rax": now["orig_rax"]}
    if again.time is not None:
        back[again.pointer] = (now["rsp"] - TIME_DEPTH) & ~63
        memory.write(back[again.pointer], again.time)
    return back


def _save(now: Registers, back: Registers, aim: Aim, tracee: Tracee, memory: TargetMemory) -> Saved:
    at = None if aim.errno_offset is None else now["fs_base"] + aim.errno_offset
    value = b"" if at is None else memory.read(at, _ERRNO_BYTES)
    return Saved(
        registers=back,
        state=tracee.floating_point_state(),
        mask=tracee.signal_mask(),
        errno=(at, value) if at is not None and len(value) == _ERRNO_BYTES else None,
    )


def _let_go_on(now: Registers, aim: Aim, tracee: Tracee) -> None:
    """Nothing is done, and the call that our stop has ended with EINTR is entered again, where that may be done."""
    call = CALLS["x86_64"].get(signed(now["orig_rax"]))
    if signed(now["rax"]) != -errno.EINTR or call not in REPEATABLE or now["cs"] != _LONG_MODE:
        return
    status = parse_thread_status(Path(f"/proc/{aim.pid}/task/{aim.look.tid}/status").read_text(errors="replace"))
    if not status.has_signal:
        tracee.start({**now, "rip": now["rip"] - SYSCALL_BYTES, "rax": now["orig_rax"], "orig_rax": 2**64 - 1})


def _read_time(memory: TargetMemory, address: int) -> tuple[int, int]:
    data = memory.read(address, _TIME_BYTES)
    if len(data) < _TIME_BYTES:
        raise ShotError("its waiting time cannot be read")
    seconds, nanoseconds = struct.unpack("<qq", data)
    return seconds, nanoseconds
