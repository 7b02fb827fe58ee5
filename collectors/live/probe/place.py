"""Where the probe of one process keeps its files, and whether they may be believed. Runs in a child that may be abandoned.

The folder belongs to the job's user, who may have put anything there: links, FIFOs, other users' files. Everybody may make
files in `/dev/shm`. So the folder must be this user's alone (0700), and every file in it a regular one of the same user.
Cost: a few system calls. Leaves nothing behind.
"""

import contextlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from pardbg.collectors.live.recorders.listening import UnixAddress
from pardbg.collectors.live.recorders.request import Target
from pardbg.collectors.live.recorders.trusted_file import RefusedError, look_at, looked_up, read_file
from pardbg.collectors.parsing.rank_file import MOST_BYTES, RankFile, parse_rank_file
from pardbg.collectors.probe.places import RANK_FILE, SERVER_SOCKET, memory_root, rank_folder
from pardbg.collectors.probe.recorder_places import DUMP_VARIABLES, PIPE_VARIABLE
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.names import AbsenceReason

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def folder_of(pid: int, started_ticks: int, uid: int, environment: Mapping[str, str]) -> bytes | None:
    """The name of a process's folder, which need not be there; None if its environment names no usable root."""
    root = memory_root(uid, environment)
    return os.fsencode(rank_folder(root, pid, started_ticks)) if os.path.isabs(root) else None  # noqa: PTH117


def check_folder(folder: bytes, uid: int, root: int | None = None) -> None:
    """Makes sure that nobody but the job's user can have put something there.

    Raises:
        RefusedError: if somebody can, or it is no folder.
        FileNotFoundError: if there is none: the process has no probe.
    """
    with looked_up(folder, uid, stat.S_IFDIR, root=root) as (_, status):
        if status.st_mode & _OTHERS:
            raise RefusedError(AbsenceReason.SKIPPED, "others may write or read in its probe's folder: not believed", folder)


def read_own_words(folder: bytes, pid: int, started_ticks: int, uid: int, root: int | None = None) -> RankFile | None:
    """What the probe says of its process; None if it is another's, left from before the machine was started.

    Args:
        folder: of the process.
        pid: its number in its own pid namespace.
        started_ticks: its start.
        uid: its user, as we see it.
        root: where the folder's name begins, if the process lives in another mount namespace.

    Raises:
        RefusedError: if the file may not be believed or not be read.
        ParseError: if it is no such file, or speaks of another process than its folder's name does.
        FileNotFoundError: if it is not written yet.
    """
    path = os.path.join(folder, os.fsencode(RANK_FILE))  # noqa: PTH118 - bytes
    own = parse_rank_file(read_file(path, uid, most_bytes=MOST_BYTES, root=root)[0])
    if own.boot_id != _BOOT_ID.read_text(encoding="ascii").strip():
        return None
    if (own.pid, own.started_ticks) != (pid, started_ticks):
        raise ParseError("it speaks of another process")
    return own


def recorder_places(target: Target, since_ns: int) -> dict[str, bytes]:
    """Where its probe has moved torch's dumps and pipe to, by the variables that name them: `/proc` shows the former values.

    A rank that was attached to has such a folder, too. What a scan that was killed has left there is not looked at: it may be
    old, and a new one can be had. So that counts only if it was written since ``since_ns``, epoch ns.
    """
    with contextlib.suppress(RefusedError, ParseError, OSError):
        own = read_targets_words(target)
        if own is not None and (own.created_ns is not None or _is_new(f"{own.dumps}{target.rank}", target, since_ns)):
            places = {DUMP_VARIABLES[0]: own.dumps, PIPE_VARIABLE: own.pipe}
            return {name: os.fsencode(place) for name, place in places.items() if place}
    return {}


def _is_new(path: str, target: Target, since_ns: int) -> bool:
    return look_at(os.fsencode(path), target.uid, root=target.root).mtime_ns >= since_ns


def folder_of_target(target: Target) -> bytes | None:
    """`folder_of` a rank; None also if its files are out of reach."""
    environment = {name: os.fsdecode(value) for name, value in target.environment.items()}
    found = folder_of(target.own_pid, target.started_ticks, target.own_uid, environment)
    return found if target.is_readable else None


def read_targets_words(target: Target) -> RankFile | None:
    """`read_own_words` of a rank whose folder is its own; None if it can have none.

    Raises:
        RefusedError, ParseError, OSError: as `check_folder` and `read_own_words`.
    """
    folder = folder_of_target(target)
    if folder is None:
        return None
    check_folder(folder, target.uid, target.root)
    return read_own_words(folder, target.own_pid, target.started_ticks, target.uid, target.root)


def find_socket(target: Target) -> UnixAddress | None:
    """The socket of the worker server that a probe has started, if there is one. The caller checks who listens there."""
    folder = folder_of_target(target)
    if folder is None:
        return None
    path = os.path.join(folder, os.fsencode(SERVER_SOCKET))  # noqa: PTH118
    with contextlib.suppress(RefusedError, OSError):
        check_folder(folder, target.uid, target.root)
        with looked_up(path, target.uid, stat.S_IFSOCK, root=target.root):
            return UnixAddress(path=path)
    return None
