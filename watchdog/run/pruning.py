"""Removes what this user's ranks and jobs of long ago have left.

A folder goes only as a whole: one that holds anything but what pardbg and torch put there is somebody's work, and stays. Links
are not followed. A rank is taken for gone if no process of this machine has its number and start and nobody holds a lock on its
page (the process may be one of another container); a job is in use while a rank that is not gone writes its dumps there.

Cost: some system calls a folder; at most `MOST_FOLDERS` go, and it stops after `DEADLINE_S`. Errors leave things as they are.
"""

import contextlib
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from pardbg.collectors.probe import places
from pardbg.collectors.procfs.stat import parse_stat
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.run.folders import RefusedError, opened_folder

RANK_AGE_S = 7 * 86400
JOB_AGE_S = 30 * 86400
MOST_FOLDERS = 200
DEADLINE_S = 1.0

_LONGEST_FILE = 1 << 20
_RANK_FOLDER = re.compile(r"(?P<pid>[1-9]\d{0,9})-(?P<ticks>\d{1,20})", re.ASCII)
_JOB_FOLDER = re.compile(r"job-[A-Za-z0-9._+-]+")
_ATTEMPT = re.compile(r"attempt\d{1,9}", re.ASCII)
_DUMP = re.compile(r"(?:dump|last-\d{1,10})_rank_\d{1,9}(?:\.(?:tmp|new))?", re.ASCII)
_RANK_NAMES = (
    *(places.RANK_FILE, places.PAGE_FILE, places.GROUPS_FILE, places.SERVER_SOCKET),
    *(places.ENDED_STACKS, places.INTERRUPTED_STACKS, places.FATAL_STACKS, places.ASKED_STACKS),
)
_RANK_ENTRY = re.compile(rf"(?:{'|'.join(re.escape(name) for name in _RANK_NAMES)})(?:\.(?:tmp|new))?|[\w-]*\.pipe", re.ASCII)


class Roots(Noun, frozen=True, kw_only=True):
    """Where to look: the folders of ranks and of jobs, whose they must be, and the job's folder that stays in any case."""

    memory: str
    disk: str
    uid: int
    kept_job: str = ""


class _RankFile(Noun, frozen=True, kw_only=True):
    """What matters here of `places.RANK_FILE`."""

    host: str | None = None
    boot_id: str | None = None
    dumps: str | None = None


class _TooLateError(Exception):
    """There is no more time."""


class _Pruning:
    """One pass: what may still be removed, until when, and which jobs are in use."""

    def __init__(self, roots: Roots, now_s: float) -> None:
        self._roots, self._now_s = roots, now_s
        self._deadline_s = time.monotonic() + DEADLINE_S
        self._used = {roots.kept_job}
        self._boot_id = _boot_id()
        self.removed = 0

    def prune(self) -> None:
        """Ranks first: they say which jobs are in use."""
        for root, pattern, look in (
            (self._roots.memory, _RANK_FOLDER, self._look_at_rank),
            (self._roots.disk, _JOB_FOLDER, self._look_at_job),
        ):
            with contextlib.suppress(FileNotFoundError), opened_folder(root, self._roots.uid) as folder:
                for name in filter(pattern.fullmatch, _names(folder)):
                    if self.removed >= MOST_FOLDERS or time.monotonic() > self._deadline_s:
                        raise _TooLateError
                    with contextlib.suppress(OSError, RefusedError):
                        look(folder, name)

    def _look_at_rank(self, root: int, name: str) -> None:
        with opened_folder(name, self._roots.uid, root) as folder:
            said = _read_rank_file(folder)
            if not self._is_gone(name, folder, said):
                self._used.add(_job_of(said.dumps))
                return
            names = _names(folder)
            if not all(map(_RANK_ENTRY.fullmatch, names)) or not self._is_old([(folder, names)], RANK_AGE_S):
                return
            _empty(folder, names)
        self._remove(name, root)

    def _look_at_job(self, root: int, name: str) -> None:
        if str(Path(self._roots.disk) / name) in self._used:
            return
        with opened_folder(name, self._roots.uid, root) as folder, contextlib.ExitStack() as opened:
            names = _names(folder)
            attempts = [entry for entry in names if _ATTEMPT.fullmatch(entry)]
            parts = [(folder, [entry for entry in names if entry not in attempts])]
            for attempt in attempts:
                inner = opened.enter_context(opened_folder(attempt, self._roots.uid, folder))
                parts.append((inner, _names(inner)))
            is_known = all(_DUMP.fullmatch(entry) for _, entries in parts for entry in entries)
            if not is_known or not self._is_old(parts, JOB_AGE_S):
                return
            for part, entries in parts:
                _empty(part, entries)
            for attempt in attempts:
                os.rmdir(attempt, dir_fd=folder)
        self._remove(name, root)

    def _is_gone(self, name: str, folder: int, said: _RankFile) -> bool:
        if said.boot_id and said.boot_id != self._boot_id:  # this machine's before it started anew, or another machine's
            return said.host == os.uname().nodename
        return not _is_locked(folder) and not _lives(name)

    def _is_old(self, parts: Iterable[tuple[int, list[str]]], age_s: float) -> bool:
        """Whether folders and all in them are older, and nothing in them is a folder."""
        for folder, names in parts:
            statuses = [os.stat(name, dir_fd=folder, follow_symlinks=False) for name in names]
            if any(stat.S_ISDIR(status.st_mode) for status in statuses):
                return False
            if any(self._now_s - status.st_mtime < age_s for status in (os.fstat(folder), *statuses)):
                return False
        return True

    def _remove(self, name: str, root: int) -> None:
        os.rmdir(name, dir_fd=root)
        self.removed += 1


def prune(roots: Roots, now_s: float) -> int:
    """Removes the folders of ranks and jobs that have ended and are old.

    Args:
        roots: where.
        now_s: the present time, epoch seconds.

    Returns:
        How many folders are gone.
    """
    pruning = _Pruning(roots, now_s)
    with contextlib.suppress(OSError, RefusedError, _TooLateError):
        pruning.prune()
    return pruning.removed


def _names(folder: int) -> list[str]:
    return os.listdir(folder)


def _empty(folder: int, names: Iterable[str]) -> None:
    for name in names:
        os.unlink(name, dir_fd=folder)


def _read_rank_file(folder: int) -> _RankFile:
    """What a rank said of itself; nothing where it cannot be read."""
    try:
        data = _read(folder, places.RANK_FILE)
        return msgspec.json.decode(data, type=_RankFile)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return _RankFile()


def _read(folder: int, name: str) -> bytes:
    descriptor = _opened_file(folder, name)
    try:
        return os.read(descriptor, _LONGEST_FILE)
    finally:
        os.close(descriptor)


def _opened_file(folder: int, name: str) -> int:
    """A descriptor of a regular file; what else it may be is looked at before it is opened.

    Raises:
        OSError: if it is none.
    """
    looked = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(looked).st_mode):
            raise OSError(f"{name} is no regular file")
        return os.open(f"/proc/self/fd/{looked}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(looked)


def _is_locked(folder: int) -> bool:
    """Whether somebody keeps a lock on the page, wherever that process is."""
    try:
        descriptor = _opened_file(folder, places.PAGE_FILE)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    finally:
        os.close(descriptor)
    return False


def _lives(name: str) -> bool:
    pid, _, ticks = name.partition("-")
    try:
        return parse_stat(Path(f"/proc/{pid}/stat").read_text(errors="replace")).started_ticks == int(ticks)
    except (OSError, ParseError):
        return False


def _job_of(dumps: str | None) -> str:
    """The job's folder of a prefix of dumps: that of the attempt's folder, where there is one."""
    folder = Path(dumps or "").parent
    return str(folder.parent if _ATTEMPT.fullmatch(folder.name) else folder)


def _boot_id() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""
