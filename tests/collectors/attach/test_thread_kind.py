"""Which threads take the interpreter lock of their own accord, told from their stacks."""

import struct

import pytest

from pardbg.collectors.attach.address_space import Mapping
from pardbg.collectors.attach.symbols import Symbol
from pardbg.collectors.attach.thread_kind import takes_lock

CODE = Mapping(start=0x10000, end=0x20000, permissions="r-xp", path="/a/libpython3.11.so.1.0")
EVALUATION = Symbol(start=0x11000, size=0x1000)
LOOP = Symbol(start=0x90000, size=0x100)
IN_EVALUATION, IN_LOOP, STARTS_PYTHON, STARTS_OTHERS = 0x11800, 0x90080, 0x15000, 0x50000
POINTER = 0x7F0000000000


def stack(frames: list[int], start: int, pointer: int = POINTER) -> bytes:
    """From the stack pointer up to the end of the description of the thread."""
    at = pointer + 8 * len(frames)
    return struct.pack(f"<{len(frames)}Q", *frames) + struct.pack("<QQQ", at, 5, at) + bytes(800) + struct.pack("<Q", start)


def judged(data: bytes, pointer: int = POINTER) -> bool:
    return takes_lock(data, pointer, CODE, EVALUATION, (LOOP,))


def test_thread_that_python_has_started_and_that_runs_python_does() -> None:
    assert judged(stack([1, IN_EVALUATION, 2, 3], STARTS_PYTHON))


def test_threads_of_torchs_loops_do() -> None:
    assert judged(stack([1, IN_LOOP], STARTS_OTHERS))


@pytest.mark.parametrize(
    ("frames", "start"),
    [
        ([1, 2], STARTS_OTHERS),
        ([1, STARTS_PYTHON], STARTS_PYTHON),  # faulthandler's
        ([1, IN_EVALUATION], STARTS_OTHERS),  # what an ended thread has left on a stack that is used again
        ([1, EVALUATION.start], STARTS_PYTHON),  # a pointer to the function, not a place in it
        ([1, 0x90100], STARTS_OTHERS),
    ],
)
def test_others_do_not(frames: list[int], start: int) -> None:
    assert not judged(stack(frames, start))


def test_stack_whose_end_was_not_found_is_no_threads() -> None:
    assert not judged(struct.pack("<QQQQ", IN_EVALUATION, IN_LOOP, 1, 2))
    assert not judged(b"")


def test_stack_pointer_need_not_be_even() -> None:
    assert judged(stack([1, IN_EVALUATION, 2], STARTS_PYTHON, POINTER + 8), POINTER + 8)
    assert not judged(stack([1, IN_EVALUATION, 2, 3], STARTS_PYTHON, POINTER + 8), POINTER)
