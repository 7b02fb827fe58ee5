"""The folder into which a rank writes, made in its user's name before it is attached to. Runs in a child.

It lies where a probe's folder would, with a `rank.json` that says where the dump will be, so that whoever reads what probes
write finds it. Cost: a few system calls. It is removed when it has been read; should pardbg be killed before, the next scan of
the rank uses and removes it, and `pardbg run` some time after the process has ended.

The user may have put anything there: nothing is opened before it is known, nothing of his is written over.
"""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from pardbg.collectors.attach.request import Target
from pardbg.collectors.live.recorders.trusted_file import RefusedError, read_file
from pardbg.collectors.parsing.rank_file import MOST_BYTES
from pardbg.collectors.probe.folder import make_private, make_root
from pardbg.collectors.probe.places import GROUPS_FILE, RANK_FILE, dump_prefix

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NEW = ".new"


class FolderError(Exception):
    """The folder may not be used; the words say why."""


def make_folder(target: Target) -> int:
    """Makes it, without what an earlier scan may have left there.

    Returns:
        A descriptor: as long as it is open, nobody else attaches to the rank.

    Raises:
        OSError: if that cannot be done.
        FolderError: if a probe has made it, or another pardbg works in it, or something else lies in the place of a file.
    """
    own = {
        "schema": "pardbg.rank/1",
        "rank": target.rank,
        "pid": target.pid,
        "started_ticks": target.started_ticks,
        "boot_id": _BOOT_ID.read_text(encoding="ascii").strip(),
        "dumps": dump_prefix(target.folder),
    }
    content = msgspec.json.encode(own)
    with _as_user(target):
        make_root(target.root)
        make_private(target.folder)
        lock = _lock(target.folder)
        try:
            _write_own(target, content)
        except BaseException:
            os.close(lock)
            raise
        return lock


def remove_folder(target: Target) -> None:
    """Removes it with all that is in it. A rank that is late then writes nothing.

    Raises:
        OSError: if its user's rights cannot be taken.
    """
    with _as_user(target):
        shutil.rmtree(target.folder, ignore_errors=True)


def remove_dump(target: Target) -> None:
    """Removes the recorder that the rank wrote: beside a server that stays it would soon be an old one."""
    with _as_user(target), contextlib.suppress(FileNotFoundError):
        os.unlink(_dump(target))  # noqa: PTH108


def _dump(target: Target) -> str:
    return f"{dump_prefix(target.folder)}{target.rank}"


def _lock(folder: str) -> int:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise FolderError("another pardbg is attached to it at this moment") from error
    except OSError:  # a file system without locks
        pass
    return descriptor


def _write_own(target: Target, content: bytes) -> None:
    path = os.path.join(target.folder, RANK_FILE)  # noqa: PTH118
    try:
        found, _ = read_file(os.fsencode(path), target.uid, most_bytes=MOST_BYTES)
    except FileNotFoundError:
        found = content
    except RefusedError as error:
        raise FolderError(f"{path}: {error}") from error
    if found != content:
        raise FolderError("it has a probe, which has not let anybody at its recorder")
    written = [os.path.join(target.folder, GROUPS_FILE), _dump(target)]  # noqa: PTH118
    for name in (*written, *(name + _NEW for name in (*written, path))):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)  # noqa: PTH108
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path + _NEW, flags, 0o600), "wb") as file:  # noqa: PTH123
        file.write(content)
    os.replace(path + _NEW, path)  # noqa: PTH105


@contextlib.contextmanager
def _as_user(target: Target) -> Iterator[None]:
    """What is done within is done with that user's rights: only root can, and need, change them."""
    user, group, groups = os.geteuid(), os.getegid(), os.getgroups()
    if target.uid == user:
        yield
        return
    wanted = _group_of(target.pid)
    try:
        os.setgroups([wanted])
        os.setegid(wanted)
        os.seteuid(target.uid)
        yield
    finally:
        if os.geteuid() != user:
            os.seteuid(user)
        if os.getegid() != group:
            os.setegid(group)
        with contextlib.suppress(PermissionError):  # not root: nothing has been changed
            os.setgroups(groups)


def _group_of(pid: int) -> int:
    """Its process's group; that of nobody if it has ended."""
    with contextlib.suppress(OSError, StopIteration, IndexError, ValueError):
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
        return int(next(line for line in lines if line.startswith("Gid:")).split()[2])
    return 65534
