"""Opens and reads one file that may be a trap. Runs in a reader's child: a dead mount may keep it for ever.

Only regular files, never through a link, never more than `LARGEST_FILE_BYTES`, and of text only the end.
"""

import os
import stat

from pardbg.collectors.memory_limit import limit_memory
from pardbg.collectors.parsing.rank_log import LOG_TAIL_BYTES
from pardbg.collectors.parsing.recognise import HEAD_BYTES, Portion, choose_portion
from pardbg.collectors.walking import is_within
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun

LARGEST_FILE_BYTES = 1024**3  # a ring of a million entries with stacks is a quarter of it
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class OpenedFile(Noun, frozen=True, kw_only=True):
    """The part of a file that its parser needs, and when it was written."""

    data: bytes
    mtime_ns: int


def read_regular_file(path: bytes, root: bytes) -> OpenedFile:
    """Reads a file for its parser.

    Args:
        path: resolved, so that its last part is no link.
        root: the resolved folder that the file must lie in, even if a folder above it was swapped since.

    Raises:
        ParseError: if it is no regular file of this folder, or larger than `LARGEST_FILE_BYTES`.
        OSError: if the kernel says so.
    """
    descriptor = os.open(path, _FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ParseError("not a regular file: not read")
        if not is_within(os.readlink(b"/proc/self/fd/%d" % descriptor), root):  # noqa: PTH115
            raise ParseError("the file moved out of its folder while it was read")
        return OpenedFile(data=_read_portion(descriptor, status.st_size), mtime_ns=status.st_mtime_ns)
    finally:
        os.close(descriptor)


def _read_portion(descriptor: int, size_bytes: int) -> bytes:
    limit_memory(0)
    head = _read(descriptor, HEAD_BYTES, 0)
    if len(head) < HEAD_BYTES:
        return head
    portion = choose_portion(head)
    if portion is Portion.NOTHING:
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
