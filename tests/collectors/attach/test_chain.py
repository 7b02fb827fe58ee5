"""The chain of frames, read as the kernel and the processor would: every frame lies where it will be looked for."""

import struct

import pytest

from pardbg.collectors.attach.chain import MARK, RED_ZONE, Functions, Laid, Saved, lay_chain
from pardbg.collectors.attach.registers import NAMES, Registers

FUNCTIONS = Functions(ensure=0x1000, run=0x2000, release=0x3000, restorer=0x4000, keeper=0x5000, copier=0x6000)
NOW: Registers = {name: 0x100 + index for index, name in enumerate(NAMES)} | {"rsp": 0x7FFF00001238, "rip": 0x7000}
BACK: Registers = {**NOW, "rax": 7, "rip": 0x6FFE, "r10": 99}
MASK = 0xABCDEF
_REGISTERS = "r8 r9 r10 r11 r12 r13 r14 r15 rdi rsi rbp rbx rdx rax rcx rsp rip eflags"
UCONTEXT_REGISTERS = _REGISTERS.split()


def state(size: int, in_use: int = 7) -> bytes:
    data = bytearray(b"\x11" * size)
    struct.pack_into("<Q", data, 464, 0x602E7)
    struct.pack_into("<Q", data, 512, in_use)
    return bytes(data)


class Machine:
    """Follows the chain: calls are told, returns from signals are done."""

    def __init__(self, laid: Laid) -> None:
        self.laid, self.registers = laid, dict(laid.start)

    def word(self, address: int) -> int:
        """Eight bytes of what was laid."""
        at = address - self.laid.at
        assert 0 <= at <= len(self.laid.data) - 8
        return int(struct.unpack_from("<Q", self.laid.data, at)[0])

    def returned(self, result: int) -> int:
        """A function returns; what does the thread come to?"""
        registers = self.registers
        where, registers["rsp"] = self.word(registers["rsp"]), registers["rsp"] + 8
        if where == FUNCTIONS.keeper:
            at = registers["rbx"] - self.laid.at
            kept = struct.pack("<I", result)
            data = bytearray(self.laid.data)
            data[at : at + 4] = kept
            self.laid = Laid(at=self.laid.at, data=bytes(data), start=self.laid.start)
            registers["rsp"] += 8
            where, registers["rsp"] = self.word(registers["rsp"]), registers["rsp"] + 8
        assert where == FUNCTIONS.restorer
        context = registers["rsp"]  # as the kernel finds it: the frame begins 8 bytes below
        for index, name in enumerate(UCONTEXT_REGISTERS):
            registers[name] = self.word(context + 40 + 8 * index)
        assert self.word(context + 40 + 8 * 18) == 0x002B000000000033
        assert self.word(context + 16 + 8) & 0xFFFFFFFF == 0x7777  # no valid alternate stack: it is left as it is
        assert self.word(context + 296) == MASK
        return self.word(context + 40 + 8 * 23)


def laid(errno: tuple[int, bytes] | None = (0x8000, b"\1\2\3\4"), size: int = 2696, in_use: int = 7) -> Laid:
    saved = Saved(registers=BACK, state=state(size, in_use), mask=MASK, errno=errno)
    return lay_chain(NOW, saved, FUNCTIONS, b"pass\0")


@pytest.mark.parametrize("result", [0, 1])
def test_functions_are_called_one_after_the_other_and_all_is_given_back(result: int) -> None:
    machine = Machine(laid())
    registers = machine.registers
    assert (registers["rip"], registers["orig_rax"]) == (FUNCTIONS.ensure, 2**64 - 1)
    assert registers["rsp"] % 16 == 8
    assert machine.returned(result) == 0
    assert (registers["rip"], registers["rsi"], registers["rsp"] % 16) == (FUNCTIONS.run, 0, 8)
    assert machine.laid.data[registers["rdi"] - machine.laid.at :].startswith(b"pass\0")
    machine.returned(0)
    assert (registers["rip"], registers["rdi"], registers["rsp"] % 16) == (FUNCTIONS.release, result, 8)
    machine.returned(0)
    assert (registers["rip"], registers["rsi"], registers["rdx"], registers["rsp"] % 16) == (FUNCTIONS.copier, 0x8000, 4, 8)
    at = registers["rdi"] - machine.laid.at
    assert machine.laid.data[at : at + 4] == b"\2\1\4\3"  # `swab` turns each pair round
    at_state = machine.returned(0)
    assert {name: registers[name] for name in UCONTEXT_REGISTERS} == {name: BACK[name] for name in UCONTEXT_REGISTERS}
    assert at_state % 64 == 0


def test_without_errno_the_copy_is_left_out() -> None:
    machine = Machine(laid(errno=None))
    for _ in range(3):
        at_state = machine.returned(1)
    assert machine.registers["rip"] == BACK["rip"]
    assert at_state


@pytest.mark.parametrize(
    ("size", "in_use", "expected"), [(832, 7, 832), (2696, 7, 2696), (11008, 7, 2816), (11008, 7 | 1 << 18, 11008)]
)
def test_state_is_marked_as_the_kernel_does_and_is_no_longer_than_the_thread_has_room_for(
    size: int, in_use: int, expected: int
) -> None:
    machine = Machine(laid(size=size, in_use=in_use))
    for _ in range(4):
        at_state = machine.returned(0)
    kept = machine.laid.data[at_state - machine.laid.at :]
    magic, extended, features, length = struct.unpack_from("<IIQI", kept, 464)
    assert (magic, extended, features, length) == (0x46505853, expected + 4, 0x602E7, expected)
    assert struct.unpack_from("<I", kept, expected) == (0x46505845,)


def test_everything_lies_below_the_red_zone_with_the_mark_on_top() -> None:
    one = laid()
    assert one.at + len(one.data) <= NOW["rsp"] - RED_ZONE
    assert one.data.rindex(MARK) == len(one.data) - 64
