"""The memory of a process, through `/proc/PID/mem`.

Cost to the process: none for reading; writing brings in the pages that are written to. Privilege: that of tracing the process.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


class TargetMemory:
    """A process's memory, open."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, address: int, count: int) -> bytes:
        """As many bytes as are there."""
        try:
            self._file.seek(address)
            return self._file.read(count) or b""
        except (OSError, ValueError, OverflowError):  # nothing there, or no address
            return b""

    def write(self, address: int, data: bytes) -> None:
        """Writes all of it.

        Raises:
            OSError: if it cannot.
        """
        self._file.seek(address)
        if self._file.write(data) != len(data):
            raise OSError(0, "its stack cannot be written to")


@contextmanager
def opened(pid: int, proc: Path = Path("/proc"), *, writable: bool = False) -> Iterator[TargetMemory]:
    """A process's memory within the block.

    Raises:
        OSError: if it may not be opened, or the process has ended.
    """
    with (proc / str(pid) / "mem").open("r+b" if writable else "rb", buffering=0) as file:
        yield TargetMemory(file)
