"""Opens and reads one file that may be a trap. Runs in a reader's child: a dead mount may keep it for ever.

Only regular files, never through a link, never more than `LARGEST_FILE_BYTES`, and of text only the end.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Iterator

from pardbg.collectors.inside import is_of_kernel, open_inside
from pardbg.collectors.memory_limit import limit_memory
from pardbg.collectors.parsing.rank_log import LOG_TAIL_BYTES
from pardbg.collectors.parsing.recognise import HEAD_BYTES, Portion, choose_portion
from pardbg.collectors.walking import is_elsewhere, is_within
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun

LARGEST_FILE_BYTES = 1024**3  # a ring of a million entries with stacks is a quarter of it
LARGEST_TABLE_BYTES = 64 * 1024**2  # a step trace of 100,000 operations is one; training data are larger
LARGEST_SOURCE_BYTES = 4 * 1024**2
_KERNELS = "a file of the kernel: not read, since reading some of them changes things"
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


Check = Callable[[bytes, os.stat_result], None]


class OpenedFile(Noun, frozen=True, kw_only=True):
    """The part of a file that its parser needs, and when it was written."""

    data: bytes
    mtime_ns: int
    size_bytes: int = 0


class SourceFile(Noun, frozen=True, kw_only=True):
    """A source file, and when its content or its name last changed: a file moved into place keeps its old ``mtime``."""

    data: bytes
    changed_ns: int


def read_regular_file(path: bytes, root: bytes) -> OpenedFile:
    """Reads a file for its parser.

    Args:
        path: resolved, so that its last part is no link.
        root: the resolved folder that the file must lie in, even if a folder above it was swapped since.

    Raises:
        ParseError: if it is no regular file of this folder, or larger than `LARGEST_FILE_BYTES`.
        OSError: if the kernel says so.
    """
    with open_regular(path) as (descriptor, status):
        if not is_within(_real_path(descriptor), root):
            raise ParseError("the file moved out of its folder while it was read")
        data = _read_portion(descriptor, status.st_size)
        return OpenedFile(data=data, mtime_ns=status.st_mtime_ns, size_bytes=status.st_size)


def read_source(path: bytes, check: Check | None = None) -> SourceFile:
    """Reads a file that a frame names, whole. Links on the way are followed, as Python did.

    Args:
        path: as the frame has it.
        check: raises what is wrong with the file that was opened, by its resolved path and status.

    Raises:
        ParseError: if it is no regular file, larger than `LARGEST_SOURCE_BYTES`, or one of the kernel's own.
        OSError: if the kernel says so.
    """
    real = os.path.realpath(path)
    if is_elsewhere(path) or is_elsewhere(real):
        raise ParseError(_KERNELS)
    with open_regular(real) as (descriptor, status):
        if _real_path(descriptor) != real:
            raise ParseError("the file was moved while it was read")
        if check is not None:
            check(real, status)
        return _source(descriptor, status)


def read_source_inside(root: int, path: bytes, uid: int) -> SourceFile:
    """The same of a file below the root of a rank in another mount namespace (`inside.py`).

    Args:
        root: a handle of it.
        path: as the rank has it.
        uid: the rank's user, as we see it: it must be able to read the file, by its owner or its mode.

    Raises:
        ParseError, OSError: as `read_source`.
    """
    handle = open_inside(root, path, follow=True)
    try:
        if is_of_kernel(handle):
            raise ParseError(_KERNELS)
        with open_regular(b"/proc/self/fd/%d" % handle, follow=True) as (descriptor, status):
            if status.st_uid != uid and not status.st_mode & stat.S_IROTH:
                raise ParseError(f"a file of user {status.st_uid} which the rank's user may not read: not read")
            return _source(descriptor, status)
    finally:
        os.close(handle)


def _source(descriptor: int, status: os.stat_result) -> SourceFile:
    if status.st_size > LARGEST_SOURCE_BYTES:
        raise ParseError(f"{status.st_size} bytes, more than the {LARGEST_SOURCE_BYTES} that pardbg reads of a source file")
    limit_memory(status.st_size)
    changed_ns = max(status.st_mtime_ns, status.st_ctime_ns)
    return SourceFile(data=_read(descriptor, status.st_size, 0), changed_ns=changed_ns)


def read_tail(descriptor: int, size_bytes: int) -> bytes:
    """The end of an open text file, at most `LOG_TAIL_BYTES`."""
    limit_memory(min(size_bytes, LOG_TAIL_BYTES))
    return _read(descriptor, LOG_TAIL_BYTES, max(0, size_bytes - LOG_TAIL_BYTES)) if size_bytes else b""


@contextlib.contextmanager
def open_regular(path: bytes, *, follow: bool = False) -> Iterator[tuple[int, os.stat_result]]:
    """Opens a file for reading if it is a regular one, and closes it.

    It is looked at before it is opened: opening a FIFO lets its writer go on, opening a device may do anything. What was looked
    at is what is opened, since the second way leads through the first descriptor and not through the name.

    Args:
        path: its last part must not be a link, unless
        follow: is set.

    Raises:
        ParseError: if it is not regular.
        OSError: if the kernel says so.
    """
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ParseError("not a regular file: not read")
        descriptor = os.open(b"/proc/self/fd/%d" % handle, _FLAGS)
    finally:
        os.close(handle)
    try:
        yield descriptor, status
    finally:
        os.close(descriptor)


def _real_path(descriptor: int) -> bytes:
    return os.readlink(b"/proc/self/fd/%d" % descriptor)  # noqa: PTH115 - bytes


def _read_portion(descriptor: int, size_bytes: int) -> bytes:
    limit_memory(0)
    head = _read(descriptor, HEAD_BYTES, 0)
    if len(head) < HEAD_BYTES:
        return head
    portion = choose_portion(head)
    if portion is Portion.NOTHING or (portion is Portion.TABLE and size_bytes > LARGEST_TABLE_BYTES):
        return head
    if portion is Portion.TAIL:
        return _read(descriptor, LOG_TAIL_BYTES, max(0, size_bytes - LOG_TAIL_BYTES))
    if size_bytes > LARGEST_FILE_BYTES:
        raise ParseError(f"{size_bytes} bytes, more than the {LARGEST_FILE_BYTES} that pardbg reads of one file")
    limit_memory(size_bytes)
    return _read(descriptor, max(size_bytes, HEAD_BYTES), 0)


def _read(descriptor: int, most_bytes: int, offset: int) -> bytes:
    """Reads in one go, which spares copies; a file system may still hand out less at a time."""
    data = os.pread(descriptor, most_bytes, offset)
    while len(data) < most_bytes and (part := os.pread(descriptor, most_bytes - len(data), offset + len(data))):
        data += part
    return data
