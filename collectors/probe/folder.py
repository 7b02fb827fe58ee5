"""The folder of a rank and its files: its user's alone, each file whole or not there.

`os` instead of `pathlib` throughout the probe: it is imported at the start of every rank.
"""

import contextlib
import fcntl
import json
import os
import resource
import stat

_OWN = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_NUMBERS = 1024  # higher ones `select` cannot watch
_HIGH_NUMBERS = 8


def make_root(path: str) -> None:
    """Makes one folder with mode 0700, or takes the one that is there if it is ours. Its mode stays: it may be the user's.

    Raises:
        OSError: if it cannot be made, or is a link, or somebody else's, or anybody may rename what is in it.
    """
    mode = _make(path)
    if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
        raise PermissionError(f"others may write to {path}")


def make_private(path: str) -> None:
    """The same for a folder whose name is ours: its mode becomes 0700.

    Raises:
        OSError: if it cannot be made, or is a link, or somebody else's.
    """
    if _make(path) & 0o077:
        os.chmod(path, 0o700)


def _make(path: str) -> int:
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise PermissionError(f"{path} is not a folder of our own")
    return stat.S_IMODE(status.st_mode)


def clear(path: str) -> None:
    """Removes the files in a folder of our own: a process that was replaced by `exec` leaves those of its former self."""
    for name in os.listdir(path):
        os.unlink(os.path.join(path, name))


def write_whole(path: str, data: bytes) -> None:
    """Writes a file so that a reader sees the old one or the new one, never a part."""
    aside = path + ".new"
    with open(os.open(aside, _OWN | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
    os.replace(aside, path)


def write_json(path: str, content: dict[str, object]) -> None:
    """The same for a JSON object."""
    write_whole(path, json.dumps(content).encode())


def append_json(path: str, content: dict[str, object]) -> None:
    """Adds a JSON object in a line of its own, with one write."""
    with open(os.open(path, _OWN | os.O_APPEND, 0o600), "ab", buffering=0) as file:
        file.write(json.dumps(content).encode() + b"\n")


def open_log(path: str) -> int:
    """A descriptor of an empty file that stays open for as long as the process lives.

    A high number: a program that closes all its files, and then opens others, must not get ours for one of those.
    """
    descriptor = os.open(path, _OWN | os.O_TRUNC | os.O_APPEND, 0o600)
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _high_number())
    except OSError:
        return os.dup(descriptor)
    finally:
        os.close(descriptor)


def _high_number() -> int:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(3, (_MOST_NUMBERS if limit == resource.RLIM_INFINITY else min(limit, _MOST_NUMBERS)) - _HIGH_NUMBERS)
