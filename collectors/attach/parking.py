"""Which thread may be borrowed: one that has been in the same call for a while and holds nothing that a shot would need. Pure.

A shot runs Python, so it takes the GIL and allocates memory. A thread that waits for the GIL or for a lock of the allocator or
of the dynamic linker must not be made to take them again: these locks lie in known parts of the memory, and all of them are
waited for as mutexes are. A thread that waits for a mutex may be in the middle of anything, so none of those is borrowed;
waiting for a condition or a semaphore is no such thing. Nor is the main thread: it would run the program's signal handlers.
"""

from pardbg.collectors.attach.address_space import Mapping, find_mapping
from pardbg.collectors.procfs.system_calls import RUNNING
from pardbg.watchdog.model.base import Noun

_REPEATABLE = """
poll ppoll epoll_wait epoll_pwait select pselect6 recvfrom recvmsg read readv nanosleep clock_nanosleep wait4 waitid
accept accept4 futex
"""
REPEATABLE = frozenset(_REPEATABLE.split())
"""Calls that may be entered again as if nothing had been."""

READS = frozenset({"read", "readv"})
_WAITABLE_FILES = ("pipe:", "socket:", "anon_inode:")
_FLAGS_AT = {"recvfrom": 3, "recvmsg": 2}
_WHOLE = 0x100  # MSG_WAITALL
_OTHER_ALLOCATORS = ("/libjemalloc", "/libtcmalloc", "/libmimalloc")
_LIBRARIES = ("/libc.so", "/libc-", "/ld-linux", "/ld-", "/libpthread", *_OTHER_ALLOCATORS)
_ARENA_BYTES = 64 * 1024 * 1024
_ARENA_HEADER_BYTES = 256  # the lock lies in the first 64
_FUTEX_COMMAND = 0x7F
_FUTEX_WAIT, _FUTEX_WAIT_BITSET = 0, 9
_CONTENDED = 2
_WALL_CLOCKS = frozenset({0, 1, 7, 8, 9, 11})
_SLEEPS = "S"


class ThreadLook(Noun, frozen=True, kw_only=True):
    """One look at a thread.

    Attributes:
        tid: its number.
        call: the system call it is in, by name.
        arguments: of the call.
        stack: its stack pointer.
        program: its program counter.
        switches: how often it has gone to sleep: one more means that it was awake since.
        state: the letter of ``/proc``.
    """

    tid: int
    call: str
    arguments: tuple[int, ...] = ()
    stack: int = 0
    program: int = 0
    switches: int = 0
    state: str = _SLEEPS


class Surroundings(Noun, frozen=True, kw_only=True):
    """What the looks are judged by. ``runtime``: first address and size of the interpreter's state, the GIL in it."""

    mappings: tuple[Mapping, ...]
    runtime: tuple[int, int]
    spare_bytes: int


def why_not(before: ThreadLook, after: ThreadLook, around: Surroundings) -> str:
    """Why a thread must not be borrowed, in words; empty if it may be.

    Args:
        before: a look.
        after: another one, at least 20 ms later.
        around: the process's memory.
    """
    if before != after or after.call == RUNNING:
        return "it moves"
    return _why_not_call(after) or _why_not_futex(after, around) or _why_not_stack(after, around)


def _why_not_call(look: ThreadLook) -> str:
    if look.state != _SLEEPS:
        return "it is in an uninterruptible call"
    if look.call not in REPEATABLE or len(look.arguments) < 4:
        return f"it is in {look.call}, which may not be entered twice"
    if look.call in _FLAGS_AT and look.arguments[_FLAGS_AT[look.call]] & _WHOLE:
        return f"it is in {look.call} until all has come, which would end early"
    if look.call == "clock_nanosleep" and look.arguments[0] not in _WALL_CLOCKS:
        return "it waits by a clock of processor time"
    return ""


def _why_not_stack(look: ThreadLook, around: Surroundings) -> str:
    stack = find_mapping(around.mappings, look.stack)
    if stack is None or "w" not in stack.permissions:
        return "its stack was not found"
    if (room := look.stack - stack.start) < around.spare_bytes:
        return f"its stack has {max(room, 0) // 1024} KiB left, and a shot may need {around.spare_bytes // 1024}"
    return ""


def why_not_file(link: str) -> str:
    """Why a thread that reads must not be borrowed, from where the link of its descriptor leads; empty if it may be.

    A read from a file is never cut short; it may be by a file system in user space that is interrupted.
    """
    return "" if link.startswith(_WAITABLE_FILES) else "it reads a file"


def merit(look: ThreadLook) -> tuple[int, int]:
    """The lower, the better to borrow.

    First come calls that the kernel itself enters again after a stop, without a limit of their own; then those whose limit has
    to be shortened; last those which tell the program of a stop (EINTR), should the tracer be killed in the wrong moment.
    """
    if look.call.startswith("epoll"):
        return 3, look.tid
    if look.call in {"recvfrom", "recvmsg", "read", "readv", "accept", "accept4"}:
        return 2, look.tid
    return int(is_limited(look)), look.tid


def is_limited(look: ThreadLook) -> bool:
    """Whether its call ends after a span of time that it was given."""
    if look.call == "futex":
        return look.arguments[1] & _FUTEX_COMMAND == _FUTEX_WAIT and look.arguments[3] != 0
    if look.call in {"poll", "epoll_wait", "epoll_pwait"}:
        return not look.arguments[2 if look.call == "poll" else 3] & 0x80000000
    return look.call in {"nanosleep", "clock_nanosleep"} or (look.call in {"select", "pselect6"} and look.arguments[4] != 0)


def waits_for_interpreter(look: ThreadLook, around: Surroundings) -> bool:
    """Whether it waits for the GIL, in which an earlier shot may have been left."""
    start, size = around.runtime
    return look.call == "futex" and start <= look.arguments[0] < start + size


def _why_not_futex(look: ThreadLook, around: Surroundings) -> str:
    if look.call != "futex":
        return ""
    address, operation = look.arguments[0], look.arguments[1] & _FUTEX_COMMAND
    mapping = find_mapping(around.mappings, address)
    reasons = {
        "it waits for a lock that the kernel hands on": operation not in {_FUTEX_WAIT, _FUTEX_WAIT_BITSET},
        "it waits for the interpreter lock": waits_for_interpreter(look, around),
        "it waits for a lock of the memory allocator": address % _ARENA_BYTES < _ARENA_HEADER_BYTES,
        "what it waits for was not found": mapping is None,
        "it waits for a lock of the C library or of the dynamic linker": mapping is not None
        and (_is_library(mapping) or _is_behind_library(mapping, around.mappings)),
        "it waits for a mutex": operation == _FUTEX_WAIT and look.arguments[2] == _CONTENDED and not look.arguments[3],
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _is_library(mapping: Mapping) -> bool:
    return any(part in mapping.path for part in _LIBRARIES)


def _is_behind_library(mapping: Mapping, mappings: tuple[Mapping, ...]) -> bool:
    """Whether it is the part of a library's data that has no file behind it: it follows the rest."""
    if mapping.path:
        return False
    before = next((other for other in mappings if other.end == mapping.start), None)
    return before is not None and _is_library(before)
