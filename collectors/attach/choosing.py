"""Chooses the thread of a process that may be borrowed, or says why there is none.

Cost to the process: none, its memory is read: the stack of the threads in question, the dynamic linker's data. Some 30 ms.
"""

import time
from pathlib import Path

from pardbg.collectors.attach.address_space import find_mapping
from pardbg.collectors.attach.chain import MARK
from pardbg.collectors.attach.frozen import is_frozen
from pardbg.collectors.attach.loader_lock import is_held, linker_data
from pardbg.collectors.attach.looking import ProcessLook, look_at_process
from pardbg.collectors.attach.memory_sharing import shares_memory
from pardbg.collectors.attach.parking import READS, ThreadLook, merit, waits_for_interpreter, why_not, why_not_file
from pardbg.collectors.attach.preparing import Prepared
from pardbg.collectors.attach.python_library import is_running
from pardbg.collectors.attach.stack_bounds import holds_any
from pardbg.collectors.attach.symbols import Read
from pardbg.collectors.attach.thread_kind import takes_lock
from pardbg.collectors.attach.tracer import ShotError

_BETWEEN_LOOKS_S = 0.02
_STACK_BYTES = 1024 * 1024
_MARK_DEPTH = 64 * 1024


def choose(pid: int, prepared: Prepared, read: Read, proc: Path = Path("/proc")) -> tuple[ThreadLook, ...]:
    """The threads that may be borrowed, the best first.

    Raises:
        ShotError: if there is none, or nothing may be done to the process; its words say why.
        OSError: if it has ended, or may not be looked at.
        ParseError: if what `/proc` says is damaged.
    """
    before = look_at_process(pid, proc)
    time.sleep(_BETWEEN_LOOKS_S)
    after = look_at_process(pid, proc)
    if reason := _why_not_process(after, prepared, read) or _why_not_again((before, after), prepared, read):
        raise ShotError(reason)
    if shares_memory(pid, proc):
        raise ShotError("another process shares its memory")
    if is_frozen(pid, proc):
        raise ShotError("it is frozen")
    reasons: dict[str, None] = {}
    good: list[ThreadLook] = []
    for look in sorted(after.threads.values(), key=lambda look: look.tid):
        reason = _why_not_thread(pid, before.threads.get(look.tid), look, prepared)
        reason = reason or _why_not_stack(look, prepared, read) or _why_not_read(pid, look, proc)
        if reason:
            reasons[reason] = None
        else:
            good.append(look)
    if not good:
        raise ShotError(f"no thread may be borrowed: {', '.join(reasons) or 'it has none'}")
    return tuple(sorted(good, key=merit))


def _why_not_process(look: ProcessLook, prepared: Prepared, read: Read) -> str:
    if look.why_not:
        return look.why_not
    if not is_running(prepared.python, read):
        return "its interpreter is not up, or is ending"
    for mapping in linker_data(prepared.around.mappings):
        if is_held(read(mapping.start, mapping.end - mapping.start), look.inner_tids):
            return "one of its threads loads a library"
    return ""


def _why_not_again(looks: tuple[ProcessLook, ...], prepared: Prepared, read: Read) -> str:
    """An earlier shot waits for the interpreter lock: it wakes every 5 ms, so that one look may find it awake."""
    for thread in (thread for look in looks for thread in look.threads.values()):
        if waits_for_interpreter(thread, prepared.around) and MARK in read(thread.stack, _MARK_DEPTH):
            return "an earlier shot still waits for the interpreter lock"
    return ""


def _why_not_thread(pid: int, before: ThreadLook | None, look: ThreadLook, prepared: Prepared) -> str:
    if look.tid == pid:
        return "its main thread runs the program's signal handlers"
    return why_not(before, look, prepared.around) if before else "it is new"


def _why_not_stack(look: ThreadLook, prepared: Prepared, read: Read) -> str:
    """A signal's frame, or a shot's, on its stack: what was interrupted may hold anything."""
    stack = read(look.stack, _STACK_BYTES)
    if holds_any(stack, prepared.c_library.restorers):
        return "it handles a signal"
    code, python = find_mapping(prepared.around.mappings, prepared.python.run), prepared.python
    if code is None or not takes_lock(stack, look.stack, code, python.evaluation, prepared.loops):
        return "it is none that takes the interpreter lock by itself"
    return ""


def _why_not_read(pid: int, look: ThreadLook, proc: Path) -> str:
    if look.call not in READS:
        return ""
    return why_not_file(str((proc / str(pid) / "fd" / str(look.arguments[0])).readlink()))
