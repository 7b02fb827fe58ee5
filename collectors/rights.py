"""Reads files with no more rights than a rank's user has, where we have more: it was he who chose which file.

Only for a child process that does one thing after the other: the rights are those of the process. What it keeps is the right to
come back, so that nobody else can signal or trace it meanwhile. Cost: some ten system calls.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from functools import partial

from pardbg.collectors.inside import RankRoot
from pardbg.collectors.opening import Check
from pardbg.collectors.procfs.stat import parse_stat
from pardbg.watchdog.errors import ParseError

_NOBODY = 65534
_MOST_BYTES = 16 * 1024
_FILE_SYSTEM = 3  # of real, effective, saved and file system's


@contextlib.contextmanager
def rights_of(uid: int, whose: RankRoot | None) -> Iterator[Check | None]:
    """Within it files open as they do for a user.

    Args:
        uid: his; of root nothing changes.
        whose: a process of his, which tells his groups; if it has ended, he has none.

    Yields:
        A check of a file that has been opened, where we are root and may not become somebody else (a hardened service).
    """
    if uid == 0 or os.geteuid() != 0:
        yield None
        return
    group, groups = _groups(uid, whose)
    own_group, own_groups = os.getegid(), os.getgroups()
    try:
        os.setgroups(groups)
    except PermissionError:
        yield partial(_check, uid, frozenset({group, *groups}))
        return
    try:
        os.setegid(group)
        os.seteuid(uid)
        yield None
    finally:
        os.seteuid(0)
        os.setegid(own_group)
        os.setgroups(own_groups)


def _check(uid: int, groups: frozenset[int], path: bytes, status: os.stat_result) -> None:
    """By the modes of the file and of the folders that lead to it, as the kernel does where there are no further lists."""
    folders = path.split(b"/")[1:-1]
    above = [b"/", *(b"/" + b"/".join(folders[: count + 1]) for count in range(len(folders)))]
    may_reach = all(_has(os.stat(folder), uid, groups, stat.S_IXOTH) for folder in above)  # noqa: PTH116 - bytes
    if not may_reach or not _has(status, uid, groups, stat.S_IROTH):
        raise PermissionError(errno.EACCES, "the rank's user may not read it")


def _has(status: os.stat_result, uid: int, groups: frozenset[int], right: int) -> bool:
    """Whether a right of everybody's is one of his: the kernel asks the first that fits of owner, group and others."""
    shift = 6 if status.st_uid == uid else 3 if status.st_gid in groups else 0
    return bool(status.st_mode & (right << shift))


def _groups(uid: int, whose: RankRoot | None) -> tuple[int, list[int]]:
    """The group of new files, and the others, of a process that is still his."""
    if whose is not None:
        with contextlib.suppress(OSError, ParseError, KeyError, ValueError, IndexError):
            folder = os.open(f"/proc/{whose.pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                if parse_stat(_read(folder, "stat")).started_ticks == whose.started_ticks:
                    lines = dict(line.partition(":")[::2] for line in _read(folder, "status").splitlines())
                    if int(lines["Uid"].split()[_FILE_SYSTEM]) == uid:
                        return int(lines["Gid"].split()[_FILE_SYSTEM]), [int(word) for word in lines["Groups"].split()]
            finally:
                os.close(folder)
    return _NOBODY, []


def _read(folder: int, name: str) -> str:
    descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.read(descriptor, _MOST_BYTES).decode(errors="replace")
    finally:
        os.close(descriptor)
