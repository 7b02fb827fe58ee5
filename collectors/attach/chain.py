"""What is laid on the borrowed thread's stack: a chain of signal frames, each of which the kernel turns into a function call.

A thread that "returns from a signal" (`rt_sigreturn`) gets all its registers from a frame on its stack. So frames in a row
call functions one after the other, and the last frame gives back every register, the floating point state and the signal mask,
as they were. Nothing of that needs whoever laid it there: once the thread runs, its tracer may be killed. Pure.

The calls are `PyGILState_Ensure`, whose result is put into the frame of the call of `PyGILState_Release` (a thread may hold the
interpreter lock while it is parked); `PyRun_SimpleStringFlags`; `PyGILState_Release`; and `swab`, which gives errno back.
The layout is the kernel's `struct rt_sigframe` of x86_64.
"""

import struct

from pardbg.collectors.attach.registers import Registers
from pardbg.watchdog.model.base import Noun

MARK = b"pardbg-shot\0\xf0\x9f\x8e\xaf\0"
"""Lies above the frames: a thread with it on its live stack is in a shot already."""

RED_ZONE = 256
"""Bytes below the stack pointer that belong to the interrupted function: 128 by the ABI, as much again for caution."""

SPARE_BYTES = 512 * 1024
"""Stack that must be left for what the functions need."""

TIME_DEPTH = 128 * 1024
"""How far below the stack pointer a waiting time lies that the call reads again: a signal's handler must not reach it."""

_ORDER = """
r8 r9 r10 r11 r12 r13 r14 r15 rdi rsi rbp rbx rdx rax rcx rsp rip eflags
"""
_NAMES = _ORDER.split()
_FRAME_BYTES = 8 + 304 + 128  # return address, ucontext, siginfo
_RDI_AT = 8 + 40 + 8 * _NAMES.index("rdi")  # return address; flags, link and stack; registers
_KEPT_BYTES = 16  # a return address of its own, and a register that it takes from the stack
_XSTATE, _HAS_FPU, _PLAIN = 7, 0x46505853, 6
_FPU_END = 0x46505845
_SOFTWARE_BYTES = 464  # where the kernel keeps a word of its own within the floating point state
_IN_USE = 512  # which parts of the state are not as after a start
_TILES, _TILES_AT = 1 << 18, 2816
_PLAIN_FLAGS = 0x202
_NO_STACK = struct.pack("<QiiQ", 0, 0x7777, 0, 0)  # no valid flags: the kernel leaves the alternate stack as it is


class Functions(Noun, frozen=True, kw_only=True):
    """Addresses in the target: of the C API's functions, and of the code of `c_library.py`; ``copier`` may be 0."""

    ensure: int
    run: int
    release: int
    restorer: int
    keeper: int
    copier: int = 0


class Saved(Noun, frozen=True, kw_only=True):
    """What is given back at the end.

    Attributes:
        registers: those with which the thread goes on.
        state: the floating point state, NT_X86_XSTATE of ptrace.
        mask: the signals that it blocks.
        errno: its four bytes, and where they are; None if that is not known.
    """

    registers: dict[str, int]
    state: bytes
    mask: int
    errno: tuple[int, bytes] | None = None


class Laid(Noun, frozen=True, kw_only=True):
    """What to write, in one piece, where, and the registers that start it all."""

    at: int
    data: bytes
    start: dict[str, int]


def lay_chain(now: Registers, saved: Saved, functions: Functions, code: bytes) -> Laid:
    """Lays out the chain.

    Args:
        now: the thread's registers as it stands in its call.
        saved: what it shall have afterwards.
        functions: what is called.
        code: Python source, ending in NUL.
    """
    state = _with_marks(_without_unused_tiles(saved.state))
    top = (now["rsp"] - RED_ZONE) & ~63
    at_mark = top - 64
    at_code = at_mark - ((len(code) + 63) & ~63)
    at_state = at_code - ((len(state) + 63) & ~63)
    last = _below(at_state)
    third = _below(last) if saved.errno and functions.copier else last
    second = _below(third)
    first = _below(second)
    plain = {"eflags": _PLAIN_FLAGS}
    at_errno, errno = saved.errno or (0, bytes(4))
    calls = [
        (first, {**plain, "rip": functions.run, "rdi": at_code, "rsp": second}, 0),
        (second, {**plain, "rip": functions.release, "rsp": third}, 0),
        (last, saved.registers, at_state),
    ]
    if third != last:
        copy = {"rip": functions.copier, "rdi": at_mark + len(MARK), "rsi": at_errno, "rdx": len(errno)}
        calls.append((third, {**plain, **copy, "rsp": last}, 0))
    frames = [(place, _frame(registers, at, saved.mask, functions.restorer)) for place, registers, at in calls]
    keep = struct.pack("<QQ", functions.keeper, 0)
    turned = bytes(errno[place ^ 1] for place in range(len(errno)))  # as `swab` wants them
    start = {
        **now,
        **plain,
        "rip": functions.ensure,
        "rsp": first - _KEPT_BYTES,
        "rbx": second + _RDI_AT,
        "rax": 0,
        "orig_rax": 2**64 - 1,
    }
    bottom = first - _KEPT_BYTES
    data = bytearray(top - bottom)
    for at, part in (*frames, (bottom, keep), (at_state, state), (at_code, code), (at_mark, MARK + turned)):
        data[at - bottom : at - bottom + len(part)] = part
    return Laid(at=bottom, data=bytes(data), start=start)


def _below(address: int) -> int:
    """Where a frame fits below an address, aligned as a call leaves the stack."""
    return ((address - _FRAME_BYTES - 8) & ~15) - 8


def _without_unused_tiles(state: bytes) -> bytes:
    """The kernel takes no state longer than that of the thread, which has no room for tile registers before it uses any.

    It does not say so: it would give the vector registers back as after a start.
    """
    (in_use,) = struct.unpack_from("<Q", state, _IN_USE)
    return state if in_use & _TILES else state[:_TILES_AT]


def _with_marks(state: bytes) -> bytes:
    """The state as the kernel itself would have put it on a stack."""
    saved = bytearray(state)
    features = struct.unpack_from("<Q", saved, _SOFTWARE_BYTES)[0]
    struct.pack_into("<IIQI", saved, _SOFTWARE_BYTES, _HAS_FPU, len(state) + 4, features, len(state))
    return bytes(saved) + struct.pack("<I", _FPU_END)


def _frame(registers: Registers, at_state: int, mask: int, restorer: int) -> bytes:
    """One `rt_sigframe`: the return address, then flags, link, stack, registers, mask, siginfo."""
    flags = _XSTATE if at_state else _PLAIN
    values = b"".join(struct.pack("<Q", registers.get(name, 0) & (2**64 - 1)) for name in _NAMES)
    segments = struct.pack("<HHHH", 0x33, 0, 0, 0x2B)
    context = values + segments + bytes(32) + struct.pack("<Q", at_state) + bytes(64)
    return (
        struct.pack("<Q", restorer) + struct.pack("<QQ", flags, 0) + _NO_STACK + context + struct.pack("<Q", mask) + bytes(128)
    )
