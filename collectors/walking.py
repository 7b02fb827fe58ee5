"""Lists the files under a path without opening any. Runs in a reader's child: a dead mount may keep it for ever.

Links are followed only as far as they stay within the given folder; FIFOs, devices and sockets are named and left alone. Paths
are bytes here, as the kernel has them: a name need not be text.
"""

import os
import stat
from collections.abc import Iterator

from pardbg.collectors.reading_protocol import ListedFile, Listing, Missing, Problem
from pardbg.watchdog.model.names import AbsenceReason

MOST_FILES = 200_000  # a walk of `/` by mistake must end
_FILES_A_LISTING = 500
_ELSEWHERE = (b"/proc", b"/sys")  # a path through /proc may lead into another mount namespace
_SKIPPED_FOLDERS = frozenset({b".git", b"__pycache__", b"node_modules", b".venv"})
_TRIGGER_SUFFIX = b".pipe"  # PyTorch makes such FIFOs beside its dumps: writing there asks for a dump
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a link to itself",
}


def walk(path: bytes) -> Iterator[Listing | Missing]:
    """Lists in parts, in a fixed order; ends at `MOST_FILES`.

    Args:
        path: a file or a folder. A link here is what the user meant and is followed.
    """
    root = os.path.realpath(path)
    if is_elsewhere(os.path.abspath(path)) or is_elsewhere(root):  # noqa: PTH100 - lexical on purpose, and bytes
        yield Missing(path=printable(path), detail="lies in /proc or /sys: copy the files out first")
        return
    try:
        status = os.stat(root)  # noqa: PTH116 - bytes
    except OSError as error:
        yield Missing(path=printable(path), detail=error.strerror or str(error))
        return
    if stat.S_ISDIR(status.st_mode):
        yield from _Walker(path, root).parts()
    elif stat.S_ISREG(status.st_mode):
        yield Listing(root=os.path.dirname(root), files=(_listed(path, root, status),), problems=(), is_last=True)  # noqa: PTH120
    else:
        yield Listing(root=root, files=(), problems=(_special(path, status.st_mode),), is_last=True)


def is_elsewhere(path: bytes) -> bool:
    """Whether a path leads through the kernel's own file systems."""
    return any(is_within(path, place) for place in _ELSEWHERE)


def is_within(path: bytes, root: bytes) -> bool:
    """Whether a resolved path lies in a resolved folder."""
    return path == root or path.startswith(root.rstrip(b"/") + b"/")


def printable(path: bytes) -> str:
    """A path as text, also where it is none."""
    return path.decode(errors="backslashreplace")


class _Walker:
    """One walk: folders still to visit, and what was found since the last part."""

    def __init__(self, path: bytes, root: bytes) -> None:
        self._root = root
        self._folders = [(path, root)]
        self._files: list[ListedFile] = []
        self._problems: list[Problem] = []
        self._count = 0

    def parts(self) -> Iterator[Listing]:
        """Yields a part every few hundred files, so that a slow walk is told from a hanging one."""
        while self._folders:
            folder, real_folder = self._folders.pop()
            for name in self._names(folder, real_folder):
                self._count += 1
                if self._count > MOST_FILES:
                    detail = f"more than {MOST_FILES} files: the rest was not listed; give the folder of one job"
                    self._problems.append(_problem(folder, AbsenceReason.SKIPPED, detail))
                    self._folders.clear()
                    break
                self._add(name, os.path.join(folder, name), os.path.join(real_folder, name))  # noqa: PTH118
                if len(self._files) + len(self._problems) >= _FILES_A_LISTING:
                    yield self._take(is_last=False)
        yield self._take(is_last=True)

    def _take(self, *, is_last: bool) -> Listing:
        listing = Listing(root=self._root, files=tuple(self._files), problems=tuple(self._problems), is_last=is_last)
        self._files, self._problems = [], []
        return listing

    def _names(self, folder: bytes, real_folder: bytes) -> list[bytes]:
        try:
            return sorted(os.listdir(real_folder))  # noqa: PTH208 - bytes
        except OSError as error:
            self._problems.append(_unlisted(folder, error))
            return []

    def _add(self, name: bytes, path: bytes, real_path: bytes) -> None:
        try:
            status = os.lstat(real_path)
            if stat.S_ISLNK(status.st_mode):
                real_path = os.path.realpath(real_path)
                if not is_within(real_path, self._root):
                    detail = f"a link out of the folder, to {printable(real_path)}: not followed; give that path if it is meant"
                    self._problems.append(_problem(path, AbsenceReason.SKIPPED, detail))
                    return
                status = os.lstat(real_path)
                if stat.S_ISDIR(status.st_mode):
                    return  # it lies within the folder: it is visited under its own name
        except OSError as error:
            self._problems.append(_unlisted(path, error))
            return
        self._sort_in(name, path, real_path, status)

    def _sort_in(self, name: bytes, path: bytes, real_path: bytes, status: os.stat_result) -> None:
        if stat.S_ISDIR(status.st_mode):
            if name not in _SKIPPED_FOLDERS:
                self._folders.append((path, real_path))
        elif stat.S_ISREG(status.st_mode):
            self._files.append(_listed(path, real_path, status))
        elif not (stat.S_ISFIFO(status.st_mode) and name.endswith(_TRIGGER_SUFFIX)):
            self._problems.append(_special(path, status.st_mode))


def _listed(path: bytes, real_path: bytes, status: os.stat_result) -> ListedFile:
    return ListedFile(
        path=printable(path),
        real_path=real_path,
        size_bytes=status.st_size,
        device=status.st_dev,
        inode=status.st_ino,
    )


def _problem(path: bytes, reason: AbsenceReason, detail: str) -> Problem:
    return Problem(path=printable(path), reason=reason, detail=detail)


def _special(path: bytes, mode: int) -> Problem:
    kind = _KINDS.get(stat.S_IFMT(mode), "of an unknown kind")
    return _problem(path, AbsenceReason.SKIPPED, f"{kind}, not a regular file: not opened")


def _unlisted(path: bytes, error: OSError) -> Problem:
    reason = AbsenceReason.DENIED if isinstance(error, PermissionError) else AbsenceReason.UNREADABLE
    return _problem(path, reason, error.strerror or str(error))
