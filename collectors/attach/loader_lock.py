"""Whether a thread is inside the dynamic linker: what a shot runs may need its lock, with the interpreter lock held. Pure.

The lock is a recursive mutex in the linker's own data; its place depends on the version, its form does not.
"""

import struct
from collections.abc import Iterator

from pardbg.collectors.attach.address_space import Mapping

_LINKERS = ("/ld-linux", "/ld-")
_RECURSIVE = 1
_FORM = struct.Struct("<IIIII")  # lock, count, owner, users, kind


def linker_data(mappings: tuple[Mapping, ...]) -> Iterator[Mapping]:
    """Where the dynamic linker keeps its data: behind its file, and after it."""
    previous: Mapping | None = None
    for mapping in mappings:
        is_own = any(part in mapping.path for part in _LINKERS)
        follows = previous is not None and not mapping.path and previous.end == mapping.start
        if "w" in mapping.permissions and (is_own or follows):
            yield mapping
        previous = mapping if is_own else None


def is_held(data: bytes, threads: frozenset[int]) -> bool:
    """Whether a recursive mutex in the data is held by one of the threads, whose numbers are those of their own namespace."""
    for at in range(0, len(data) - _FORM.size + 1, 4):
        lock, count, owner, users, kind = _FORM.unpack_from(data, at)
        if owner in threads and lock in {1, 2} and count and users and kind == _RECURSIVE:
            return True
    return False
