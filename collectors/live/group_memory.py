"""A process group read out of a process's memory, given the address of its Python object. Runs in the child of `asking.py`.

A Python frame shows a group as ``<torch._C._distributed_c10d.ProcessGroup at 0x...>`` and nothing more. Behind that address
lies pybind11's instance, which points to torch's C++ object, which holds rank, size and description. That layout is no
interface: it is believed only if every field makes sense. Nothing is stopped, nothing is written.
"""

import struct
from collections.abc import Callable

from pardbg.watchdog.model.base import Noun

ReadMemory = Callable[[int, int], bytes | None]
"""Bytes at an address, exactly so many, or None."""

_INSTANCE_BYTES = 24
_POINTER_AT = 16  # behind the head of a Python object
_OBJECT_BYTES = 160
_LONGEST_DESCRIPTION = 64
_INLINE_BYTES = 16
_MOST_BACKENDS = 16
_LAYOUTS = ((24, 40), (32, 48))
"""Where rank and description lie: torch 2.11 and later (one word of reference counts), before (two words)."""


class GroupInfo(Noun, frozen=True, kw_only=True):
    """What a group's own object says of it; ``rank`` is the group rank of this process."""

    size: int
    rank: int
    description: str


def read_group(read: ReadMemory, address: int, world_size: int | None) -> GroupInfo | None:
    """Follows the pointers; None if anything on the way is not what it should be."""
    instance = read(address, _INSTANCE_BYTES)
    if instance is None:
        return None
    (place,) = struct.unpack_from("<Q", instance, _POINTER_AT)
    found = read(place, _OBJECT_BYTES) if _is_pointer(place) else None
    if found is None or not _is_pointer(struct.unpack_from("<Q", found, 0)[0]):
        return None
    for numbers_at, description_at in _LAYOUTS:
        group = _read_fields(read, found, place, numbers_at, description_at)
        if group is not None and (world_size is None or group.size <= world_size):
            return group
    return None


def _read_fields(read: ReadMemory, found: bytes, place: int, numbers_at: int, description_at: int) -> GroupInfo | None:
    rank, size, backend = struct.unpack_from("<iiB", found, numbers_at)
    if not (0 <= rank < size and backend < _MOST_BACKENDS and _is_pointer(struct.unpack_from("<Q", found, numbers_at - 8)[0])):
        return None
    text_at, length = struct.unpack_from("<QQ", found, description_at)
    inline_at = description_at + 16
    if length > _LONGEST_DESCRIPTION:
        return None
    if text_at == place + inline_at:
        text = found[inline_at : inline_at + length] if length < _INLINE_BYTES else None
    else:
        text = read(text_at, length) if length >= _INLINE_BYTES and _is_pointer(text_at, alignment=1) else None
    if text is None or not all(0x20 <= byte < 0x7F for byte in text):
        return None
    return GroupInfo(size=size, rank=rank, description=text.decode("ascii"))


def _is_pointer(value: int, alignment: int = 8) -> bool:
    return 0x1000 < value < 2**56 and value % alignment == 0
