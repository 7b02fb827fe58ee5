"""A user's own folders: in places where others may write too, neither links nor what belongs to somebody else is used.

Cost: a few system calls. They block where the folder lies on a dead mount: only ``PARDBG_DIR`` can be there. It leaves the
folders.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_MODE = 0o700
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class RefusedError(Exception):
    """The folder must not be used; the words say why."""


@contextlib.contextmanager
def opened_folder(name: str, uid: int, parent: int | None = None) -> Iterator[int]:
    """A descriptor of a folder of this user's.

    Args:
        name: of the folder; a path if there is no parent.
        uid: who must own it.
        parent: descriptor of the folder it is in.

    Raises:
        RefusedError: if it is a link, no folder, or another user's.
        OSError: if it is not there, or cannot be opened.
    """
    try:
        descriptor = os.open(name, _FLAGS, dir_fd=parent)
    except NotADirectoryError as error:  # a link, too
        raise RefusedError(f"{name} is {'a link' if _is_link(name, parent) else 'no folder'}") from error
    try:
        owner = os.fstat(descriptor).st_uid
        if owner != uid:
            raise RefusedError(f"{name} belongs to user {owner}")
        yield descriptor
    finally:
        os.close(descriptor)


def why_refused(root: str, uid: int) -> str:
    """Why nothing may be put into this root, empty if it may. Makes nothing; a root that is not there yet may."""
    try:
        with opened_folder(root, uid):
            return ""
    except RefusedError as error:
        return str(error)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{root}: {error.strerror}"


def make_job_folder(folder: str, uid: int) -> None:
    """Makes the folder and its root, 0700, where they are not there.

    Raises:
        RefusedError: if either is not this user's own folder, or cannot be made.
    """
    path = Path(folder)
    try:
        with contextlib.suppress(FileExistsError):
            path.parent.mkdir(_MODE)
        with opened_folder(str(path.parent), uid) as root:
            with contextlib.suppress(FileExistsError):
                os.mkdir(path.name, _MODE, dir_fd=root)
            with opened_folder(path.name, uid, root):
                pass
    except OSError as error:
        raise RefusedError(f"{folder} cannot be made: {error.strerror}") from error


def _is_link(name: str, parent: int | None) -> bool:
    with contextlib.suppress(OSError):
        return os.path.islink(name) if parent is None else bool(os.readlink(name, dir_fd=parent))  # noqa: PTH114
    return False
