"""Where the stack of a thread ends, as the C library knows it, and whether a signal is being handled on it. Pure.

The memory map does not tell: a stack may be one piece with what lies below it, and a coroutine's is a piece of something else.
"""

import struct

_PAGE = 4096
_MOST_BYTES = 1 << 32
DESCRIPTOR_BYTES = 2560
"""The C library's description of a thread, at its thread pointer, is no longer than this."""


def stack_bottom(descriptor: bytes, thread_pointer: int, stack_pointer: int) -> int | None:
    """The lowest address that a thread may use of its stack; None if it is not on the stack that the C library gave it.

    Args:
        descriptor: what lies at the thread pointer: among much else, the stack's address, its size, and that of its guard.
        thread_pointer: ``fs_base``; it lies at the top of the same stack.
        stack_pointer: where the thread is.
    """
    words: list[int] = [word for (word,) in struct.iter_unpack("<Q", descriptor[: len(descriptor) & -8])]
    for block, size, guard in zip(words, words[1:], words[2:], strict=False):
        if not (block and block % _PAGE == 0 and size % _PAGE == 0 and 0 < size < _MOST_BYTES and guard < size):
            continue
        if block + guard <= stack_pointer < thread_pointer <= block + size:
            return block + guard
    return None


def holds_any(stack: bytes, addresses: tuple[int, ...]) -> bool:
    """Whether one of the addresses lies on a stack, which begins at a whole word."""
    return any(_holds(stack, struct.pack("<Q", address)) for address in addresses)


def _holds(stack: bytes, word: bytes) -> bool:
    stem = word.rstrip(b"\0")  # stacks are full of zeros, which make a search for some slow
    at = stack.find(stem)
    while at >= 0 and (at % 8 or stack[at : at + 8] != word):
        at = stack.find(stem, at + 1)
    return at >= 0
