"""One process's folder in ``/proc``, held open: once the process has ended it answers nothing, even if its number is reused.

Read-only. Some of its files can block while the process is stuck: used only in the child process of `asking.py`.
"""

import os
from types import TracebackType

_MOST_BYTES = 16 * 1024 * 1024
_MOST_DESCRIPTORS = 20_000
_LARGEST_ADDRESS = 2**63


class ProcessFolder:
    """Reads files, links and memory of one process. What cannot be read is None; `is_denied` remembers why."""

    def __init__(self, pid: int, proc: str = "/proc") -> None:
        """Opens the folder.

        Raises:
            OSError: if there is none, or it is hidden.
        """
        self._folder = os.open(f"{proc}/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.is_denied = False

    def __enter__(self) -> "ProcessFolder":  # noqa: PYI034 - Self needs Python 3.11
        """Gives itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Closes the folder."""
        os.close(self._folder)

    def text(self, name: str) -> str | None:
        """The whole of a small file."""
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=self._folder)
        except OSError as error:
            self._note(error)
            return None
        try:
            parts: list[bytes] = []
            while (part := os.read(descriptor, 65536)) and len(parts) * 65536 < _MOST_BYTES:
                parts.append(part)
        except OSError as error:
            self._note(error)
            return None
        finally:
            os.close(descriptor)
        return b"".join(parts).decode(errors="replace")

    def link(self, name: str) -> str | None:
        """Where a link of the folder points to, as the kernel words it. It is never followed."""
        try:
            return os.readlink(name, dir_fd=self._folder)
        except OSError as error:
            self._note(error)
            return None

    def descriptors(self) -> list[str]:
        """The numbers of its open files."""
        try:
            descriptor = os.open("fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._folder)
        except OSError as error:
            self._note(error)
            return []
        try:
            return os.listdir(descriptor)[:_MOST_DESCRIPTORS]  # noqa: PTH208 - of a descriptor
        except OSError as error:
            self._note(error)
            return []
        finally:
            os.close(descriptor)

    def memory(self, address: int, size_bytes: int) -> bytes | None:
        """Bytes of its memory, exactly so many; the process is not stopped and notices nothing."""
        if not 0 < address < _LARGEST_ADDRESS - size_bytes:
            return None
        try:
            descriptor = os.open("mem", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)
        except OSError as error:
            self._note(error)
            return None
        try:
            data = os.pread(descriptor, size_bytes, address)
        except OSError:
            return None
        finally:
            os.close(descriptor)
        return data if len(data) == size_bytes else None

    def _note(self, error: OSError) -> None:
        self.is_denied |= isinstance(error, PermissionError)
