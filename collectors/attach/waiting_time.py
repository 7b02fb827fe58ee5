"""How a call that waits for a limited time is entered again for what is left of it. Pure.

The kernel keeps deadlines of interrupted calls itself, but a return from a signal, of which a shot is made, forgets them.
"""

import struct
from collections.abc import Callable

from pardbg.collectors.attach.registers import Registers, signed
from pardbg.watchdog.model.base import Noun

_ABSOLUTE = 1  # TIMER_ABSTIME
_FUTEX_COMMAND, _FUTEX_WAIT = 0x7F, 0
_MS, _S = 1_000_000, 1_000_000_000

ReadTime = Callable[[int], tuple[int, int]]


class Again(Noun, frozen=True, kw_only=True):
    """How to enter the call again: registers to change, and 16 bytes to write (a time), None if there is none.

    ``pointer`` is the register that shall point to those bytes.
    """

    registers: dict[str, int] = {}
    time: bytes | None = None
    pointer: str = ""


def shorten(call: str, registers: Registers, waited_ns: int, read_time: ReadTime) -> Again:
    """What to change so that the whole wait is no longer than it was to be.

    Args:
        call: its name.
        registers: as it was entered.
        waited_ns: for how long it has waited already.
        read_time: gives seconds and nanoseconds at an address.
    """
    if call in {"poll", "epoll_wait", "epoll_pwait"}:
        name = "rdx" if call == "poll" else "r10"
        limit_ms = signed(registers[name] & 0xFFFFFFFF | (-(1 << 32) if registers[name] & 0x80000000 else 0))
        return Again() if limit_ms < 0 else Again(registers={name: max(0, limit_ms - waited_ns // _MS)})
    pointer = _relative(call, registers)
    if not pointer or not registers[pointer]:
        return Again()
    seconds, nanoseconds = read_time(registers[pointer])
    left_ns = max(0, seconds * _S + nanoseconds - waited_ns)
    return Again(time=struct.pack("<qq", left_ns // _S, left_ns % _S), pointer=pointer)


def _relative(call: str, registers: Registers) -> str:
    """The register that points to a span of time which the kernel does not shorten itself; empty if there is none.

    `sleep` of the C library lets the kernel write what is left over the time itself: then it is right already.
    """
    if call == "nanosleep":
        return "" if registers["rdi"] == registers["rsi"] else "rdi"
    if call == "clock_nanosleep":
        return "" if registers["rsi"] & _ABSOLUTE or registers["rdx"] == registers["r10"] else "rdx"
    if call == "futex":
        return "r10" if registers["rsi"] & _FUTEX_COMMAND == _FUTEX_WAIT else ""
    return ""
