"""The page of one rank's probe, held open and read again and again.

Only pages in memory (the file system of /dev/shm) are read: nothing there can block, so that no child process is needed. A
mount of the user's own within it is another file system, and is refused. Where the way there may block, in another mount
namespace or to a folder that ``PARDBG_DIR`` names, a child opens it (`inside_page.py`). Cost: a system call and some 20
microseconds a look.
"""

import contextlib
import os
import stat
from pathlib import Path

from pardbg.collectors.live.probe.place import check_folder, folder_of, read_own_words
from pardbg.collectors.live.recorders.trusted_file import RefusedError
from pardbg.collectors.parsing.page import parse_signs
from pardbg.collectors.probe.page_format import PAGE_SIZE
from pardbg.collectors.probe.places import PAGE_FILE, ROOT_VARIABLE
from pardbg.collectors.vitals.inside_page import OnDiskError, open_inside_page
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.heartbeat import Heartbeat
from pardbg.watchdog.model.world import RankProcess

_MEMORY = Path("/dev/shm")  # noqa: S108 - where probes keep pages
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class PageFile:
    """A page that is open. Close it."""

    def __init__(self, descriptor: int, pid: int) -> None:
        self._descriptor, self._pid = descriptor, pid

    def read(self) -> Heartbeat | None:
        """What it says now; None if it is torn or spoilt."""
        try:
            return parse_signs(iter(lambda: os.pread(self._descriptor, PAGE_SIZE, 0), b""), self._pid)
        except (ParseError, OSError):
            return None

    def close(self) -> None:
        """Lets go of the file."""
        os.close(self._descriptor)


def open_page(rank: RankProcess) -> PageFile | None:
    """The page of a rank, None if it has none or none that may be believed."""
    try:
        descriptor = open_in_memory(rank, PAGE_FILE)
    except OnDiskError:
        return None
    return None if descriptor is None else PageFile(descriptor, rank.own_pid)


def is_near(rank: RankProcess) -> bool:
    """Whether its probe's files are found without a child process: in memory, by the usual name."""
    return rank.is_at_home and not rank.recorder.get(ROOT_VARIABLE)


def open_in_memory(rank: RankProcess, name: str) -> int | None:
    """A descriptor of a file that the rank's probe keeps in memory; None if there is none that may be believed.

    Raises:
        OnDiskError: if it keeps it on a disk.
    """
    if not is_near(rank):
        return open_inside_page(rank, name)
    folder = folder_of(rank.own_pid, rank.started_ticks, rank.own_uid, rank.recorder)
    if folder is None or not _is_in_memory(folder):
        return None
    with contextlib.suppress(RefusedError, ParseError, OSError):
        check_folder(folder, rank.uid)
        if read_own_words(folder, rank.own_pid, rank.started_ticks, rank.uid) is not None:
            return _open(os.path.join(folder, os.fsencode(name)), rank)  # noqa: PTH118 - bytes
    return None


def _open(path: bytes, rank: RankProcess) -> int | None:
    descriptor = os.open(path, _FLAGS)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_uid == rank.uid and status.st_dev == _MEMORY.stat().st_dev:
        return descriptor
    os.close(descriptor)
    return None


def _is_in_memory(folder: bytes) -> bool:
    """Whether the folder is there, and on the file system of /dev/shm itself."""
    try:
        return os.lstat(folder).st_dev == _MEMORY.stat().st_dev
    except OSError:
        return False
