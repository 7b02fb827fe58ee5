"""Files that hold a secret: a key, tokens. One that others may read is refused, as ssh does, since it is none any more."""

import os
import stat
from pathlib import Path

from pardbg.watchdog.errors import InputError

MOST_BYTES = 1024**2
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_private(path: Path, what: str) -> bytes:
    """The bytes of such a file. Links are followed: Kubernetes mounts secrets as links.

    Args:
        path: the file.
        what: what it holds, in words for an error.

    Raises:
        InputError: if it cannot be read, is no regular file, is somebody else's, or may be read by others.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        raise InputError(f"cannot read {what}, {path}: {error.strerror}", remedy="name another file") from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{what}, {path}, is no regular file", remedy="name a file")
        if status.st_uid not in {0, os.geteuid()}:
            raise InputError(f"{what}, {path}, belongs to uid {status.st_uid}", remedy=f"chown {os.geteuid()} {path}")
        if status.st_mode & _OTHERS:
            mode = stat.S_IMODE(status.st_mode)
            raise InputError(f"{what}, {path}, may be used by others (mode {mode:04o})", remedy=f"chmod 600 {path}")
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InputError(f"{what}, {path}, is larger than {MOST_BYTES} bytes", remedy="name another file")
    return data
