"""Looks at and reads a file whose name the job chose: it may be a FIFO, a link, somebody else's, or on a dead mount.

Nothing is opened before it is known: `O_PATH` opens no device and wakes no FIFO. Runs in a child process, since a dead mount
may keep it for ever. It leaves nothing behind.
"""

import contextlib
import os
import stat
from collections.abc import Iterator

from pardbg.collectors.inside import is_of_kernel, open_inside
from pardbg.collectors.live.recorders.outcome import Refusal
from pardbg.collectors.walking import is_elsewhere, printable
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import AbsenceReason

MOST_FILE_BYTES = 256 * 1024**2
_LOOK_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class RefusedError(Exception):
    """The file must not be used."""

    def __init__(self, reason: AbsenceReason, detail: str, path: bytes) -> None:
        super().__init__(detail)
        self.refusal = Refusal(reason=reason, detail=detail, origin=printable(path))


class Look(Noun, frozen=True, kw_only=True):
    """What identifies one state of a file."""

    inode: int
    mtime_ns: int
    size_bytes: int


@contextlib.contextmanager
def looked_up(path: bytes, uid: int | None, kind: int, *, root: int | None = None) -> Iterator[tuple[int, os.stat_result]]:
    """An `O_PATH` descriptor of a file of the right kind and owner, with its status; open it through ``/proc/self/fd``.

    Args:
        path: the name; its folder may be reached through links, the file itself may be none.
        uid: who must own it, None for anybody.
        kind: what it must be: ``stat.S_IFREG``, ``S_IFIFO``, ``S_IFDIR`` or ``S_IFSOCK``.
        root: a handle of the root of a rank in another mount namespace, at which the path begins (`rank_root.py`).

    Raises:
        RefusedError: if it is something else, or somebody else's.
        FileNotFoundError: if there is nothing.
    """
    try:
        descriptor = _handle(path) if root is None else open_inside(root, path)
    except PermissionError as error:
        raise RefusedError(AbsenceReason.DENIED, "its folder belongs to another user: run pardbg as root", path) from error
    try:
        status = os.fstat(descriptor)
        if stat.S_IFMT(status.st_mode) != kind:
            detail = f"{_kind(status.st_mode)}, not {_kind(kind)}: not opened"
            raise RefusedError(AbsenceReason.SKIPPED, detail, path)
        if root is not None and is_of_kernel(descriptor):
            raise RefusedError(AbsenceReason.SKIPPED, "a file of the kernel's own: not opened", path)
        if uid is not None and status.st_uid != uid:
            raise RefusedError(AbsenceReason.SKIPPED, f"it belongs to user {status.st_uid}, not to the job's: not opened", path)
        yield descriptor, status
    finally:
        os.close(descriptor)


def _handle(path: bytes) -> int:
    folder = os.path.realpath(os.path.dirname(path))  # noqa: PTH120 - bytes
    if is_elsewhere(folder):
        raise RefusedError(AbsenceReason.SKIPPED, "lies in /proc or /sys: not opened", path)
    return os.open(os.path.join(folder, os.path.basename(path)), _LOOK_FLAGS)  # noqa: PTH118, PTH119


def look_at(path: bytes, uid: int, *, root: int | None = None) -> Look:
    """The present state of a regular file, unopened.

    Raises:
        RefusedError: as `looked_up`.
        FileNotFoundError: as `looked_up`.
    """
    with looked_up(path, uid, stat.S_IFREG, root=root) as (_, status):
        return _look(status)


def read_file(
    path: bytes, uid: int | None, *, most_bytes: int = MOST_FILE_BYTES, offset: int = 0, root: int | None = None
) -> tuple[bytes, Look]:
    """A regular file's bytes from an offset on, and its state before they were read.

    Raises:
        RefusedError: as `looked_up`, and if these are more than ``most_bytes`` or may not be read.
        FileNotFoundError: as `looked_up`.
    """
    with looked_up(path, uid, stat.S_IFREG, root=root) as (descriptor, status):
        if status.st_size - offset > most_bytes:
            raise RefusedError(AbsenceReason.UNREADABLE, f"{status.st_size} bytes, more than {most_bytes}", path)
        try:
            with open(f"/proc/self/fd/{descriptor}", "rb", buffering=0) as file:  # noqa: PTH123
                file.seek(offset)
                data = bytearray()
                while len(data) <= most_bytes and (part := file.read(max(status.st_size, 1))):
                    data += part
        except PermissionError as error:
            raise RefusedError(AbsenceReason.DENIED, "only the job's user may read it: run pardbg as root", path) from error
        return bytes(data), _look(status)


def _look(status: os.stat_result) -> Look:
    return Look(inode=status.st_ino, mtime_ns=status.st_mtime_ns, size_bytes=status.st_size)


def _kind(mode: int) -> str:
    names = {stat.S_IFIFO: "a FIFO", stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFSOCK: "a socket"}
    return names.get(stat.S_IFMT(mode), "a regular file" if stat.S_ISREG(mode) else "a device")
