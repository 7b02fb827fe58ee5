"""Whether a thread takes the interpreter lock of its own accord: only such a one may be made to wait for it. Pure.

Who holds that lock may at any moment call a library that hands work to threads of its own (OpenBLAS, OpenMP, a program's C++)
and waits for them with the lock held. If one of those were waiting for the lock, because a shot wants it, both would wait for
ever. Nobody waits like that for a thread that Python has started and that is in Python code, nor for those of torch that run
Python's hooks and callbacks: it would have hung without us.
"""

from pardbg.collectors.attach.address_space import Mapping
from pardbg.collectors.attach.stack_bounds import DESCRIPTOR_BYTES
from pardbg.collectors.attach.symbols import Symbol

EVALUATION = "_PyEval_EvalFrameDefault"
"""CPython's function that runs Python code; the address of a place in it lies on the stack of a thread that does."""

TORCH_LOOPS = (
    "_ZN4c10d16ProcessGroupGloo7runLoopEi",
    "_ZN5torch8autograd6Engine11thread_initEiRKSt10shared_ptrINS0_10ReadyQueueEEb",
)
"""What torch's threads of gloo, and those of its backward pass, are in for as long as they live."""

_WORD = 8
_ALIGNED = 2  # words


def takes_lock(stack: bytes, stack_pointer: int, code: Mapping, evaluation: Symbol, loops: tuple[Symbol, ...]) -> bool:
    """Whether it does.

    Args:
        stack: what lies from the thread's stack pointer on.
        stack_pointer: where it is.
        code: the instructions of the interpreter.
        evaluation: `EVALUATION`, in the process.
        loops: `TORCH_LOOPS`, in the process.
    """
    words = memoryview(stack)[: len(stack) & -_WORD].cast("Q")
    at = _descriptor_at(words, stack_pointer)
    if at is None:
        return False
    frames = set(words[:at])
    if any(_holds(loop, frames) for loop in loops):
        return True
    own = words[at : at + DESCRIPTOR_BYTES // _WORD]  # the function that it was started with is among these
    return _holds(evaluation, frames) and any(word in code for word in own)


def _descriptor_at(words: "memoryview[int]", stack_pointer: int) -> int | None:
    """Where, in words, the C library's description of the thread begins: with its own address, twice."""
    first = stack_pointer // _WORD
    for index in range(-first % _ALIGNED, len(words) - 2, _ALIGNED):
        if words[index] == (first + index) * _WORD == words[index + 2]:
            return index
    return None


def _holds(function: Symbol, frames: set[int]) -> bool:
    return any(function.start < word < function.start + function.size for word in frames)
