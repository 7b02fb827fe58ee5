"""The writer of the page (`page_format.py`).

Cost: about 2 us a record, no system call. The page's memory is given to it beforehand: writing to a mapped file whose system is
full would end the process. It lies on tmpfs, where nothing can make the writer wait for a disk.
"""

import fcntl
import mmap
import os
import struct
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from .page_format import HEAD_SIZE, PAGE_SIZE, Record, StepRecord, encode_header, encode_values, layout_of

_IN_MEMORY = frozenset({"tmpfs", "ramfs"})


class Page:
    """A page of this process."""

    def __init__(self, path: str) -> None:
        """Makes it.

        Raises:
            OSError: if there is no room for it, or it cannot be made.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, PAGE_SIZE)
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # held by the mapping: whoever tidies up sees that we live
            self._map = mmap.mmap(descriptor, PAGE_SIZE)
        finally:
            os.close(descriptor)
        header = encode_header(os.getpid(), time.time_ns())
        self._map[: len(header)] = header
        self._version = 0

    def slot(self, kind: type[Record]) -> "Slot":
        """The place of a record that nobody else writes: its versions are the caller's."""
        offset, values = layout_of(kind)
        return Slot(self._map, offset, offset + HEAD_SIZE + values.size, values.pack)

    def step_reader(self) -> Callable[[], int]:
        """A function that says how many steps have been noted on the page so far. Cost: 0.2 us."""
        mapped, at, number = self._map, layout_of(StepRecord)[0] + HEAD_SIZE, struct.Struct("<Q")
        return lambda: number.unpack_from(mapped, at)[0]

    def write(self, kind: type[Record], *values: Any) -> None:
        """Writes a record of these values at its place. To make the record itself would cost as much again."""
        self._version += 1
        offset, data = encode_values(kind, values, self._version)
        self._map[offset : offset + len(data)] = data


class Slot(NamedTuple):
    """The place of one record, for a hook that writes it without looking anything up."""

    mapped: mmap.mmap
    start: int
    end: int
    pack: Callable[..., bytes]


def is_in_memory(path: str) -> bool:
    """Whether a file there lies in memory and on no disk."""
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
        mounts = [line.split()[1:3] for line in file]
    inside = [(len(point), kind) for point, kind in mounts if path.startswith(point.rstrip("/") + "/")]
    return max(inside, default=(0, ""))[1] in _IN_MEMORY
