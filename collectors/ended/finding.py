"""Which folders in a root are of processes that are gone. Runs in a reader's child, which may be abandoned.

Everybody may make folders in `/dev/shm`: a root must belong to its user, and nobody else may write to it. Cost: a few system
calls a folder, and one reading of the table of processes where a folder's process is not found under its number. Leaves nothing
behind.
"""

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pardbg.collectors.ended.requests import LeftFolder, LeftListed, LeftRequest
from pardbg.collectors.live.recorders.trusted_file import RefusedError, looked_up
from pardbg.collectors.procfs.stat import ProcessStat, parse_stat
from pardbg.collectors.procfs.status import parse_status
from pardbg.watchdog.errors import ParseError

MOST_FOLDERS = 20_000
_MOST_FILES = 64
_NAME = re.compile(rb"(\d{1,10})-(\d{1,19})")
_ENDED = frozenset("ZXx")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def list_left(request: LeftRequest, proc: Path = Path("/proc")) -> LeftListed:
    """Lists them; none if the root is not there or may not be believed."""
    table = _Table(proc)
    try:
        with looked_up(request.root, request.uid, stat.S_IFDIR) as (_, status):
            if status.st_mode & _OTHERS_WRITE and not status.st_mode & stat.S_ISVTX:
                return LeftListed(folders=())
        names = sorted(_names(request.root))
    except (RefusedError, OSError):
        return LeftListed(folders=())
    folders = (_look(os.path.join(request.root, name), request.uid, table) for name in names)  # noqa: PTH118 - bytes
    return LeftListed(folders=tuple(folder for folder in folders if folder is not None))


def _names(root: bytes) -> Iterator[bytes]:
    with os.scandir(root) as entries:
        for count, entry in enumerate(entries):
            if count >= MOST_FOLDERS:
                return
            if _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                yield entry.name


def _look(path: bytes, uid: int | None, table: "_Table") -> LeftFolder | None:
    match = _NAME.fullmatch(os.path.basename(path))  # noqa: PTH119 - bytes
    if match is None:
        return None
    pid, started_ticks = int(match[1]), int(match[2])
    try:
        status = os.lstat(path)
        found = table.find(pid, started_ticks)
        if (found is not None and found.state not in _ENDED) or (uid is not None and status.st_uid != uid):
            return None
        return LeftFolder(
            path=path,
            pid=pid,
            started_ticks=started_ticks,
            uid=status.st_uid,
            touched_ns=_touched_ns(path),
            exit_code=_exit_code(found),
        )
    except OSError:
        return None


def _touched_ns(path: bytes) -> int:
    times = [0]
    with os.scandir(path) as entries:
        for _, entry in zip(range(_MOST_FILES), entries, strict=False):
            with contextlib.suppress(OSError):
                times.append(entry.stat(follow_symlinks=False).st_mtime_ns)
    return max(times)


def _exit_code(found: ProcessStat | None) -> int | None:
    """Of a zombie; 0 is also what the kernel shows those who may not know."""
    if found is None or not found.wait_status:
        return None
    try:
        return os.waitstatus_to_exitcode(found.wait_status)
    except ValueError:
        return None


class _Table:
    """The processes of this machine, also by the numbers that they have inside containers."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._stat = cache(self._read)

    def find(self, pid: int, started_ticks: int) -> ProcessStat | None:
        """The process of that number - here, or in a container that shares our memory file system - and start."""
        found = self._stat(pid)
        if found is not None and found.started_ticks == started_ticks:
            return found
        twins = (other for other in self._pids() if (stat := self._stat(other)) and stat.started_ticks == started_ticks)
        return next((self._stat(other) for other in twins if pid in self._inner_numbers(other)), None)

    def _pids(self) -> list[int]:
        return [int(name) for name in os.listdir(self._proc) if name.isdecimal()]  # noqa: PTH208 - names only

    def _read(self, pid: int) -> ProcessStat | None:
        try:
            return parse_stat((self._proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace"))
        except (OSError, ParseError):
            return None

    def _inner_numbers(self, pid: int) -> tuple[int, ...]:
        try:
            return parse_status((self._proc / str(pid) / "status").read_text(encoding="utf-8", errors="replace")).namespace_pids
        except (OSError, ParseError):
            return ()
