"""The page: what a rank keeps about itself in mapped memory, so that reading it takes no help of the rank.

Little-endian. A header, written once; then records, each ``version u32, crc u32, payload``. The writer makes a record whole at
its new version with one copy; a reader takes it only if the checksum of version and payload fits, and looks again otherwise: a
torn record is noticed on every processor, whatever its memory order. A version of 0 says "never written".
"""

import struct
import zlib
from typing import Any, NamedTuple

from .replica_format import SIZE as REPLICA_SIZE

PAGE_SIZE = 4096
MAGIC = b"PARDBG\x00\x01"
_HEADER = struct.Struct("<8sIIQ")  # magic, page size, pid, created_ns
_HEAD = struct.Struct("<II")
MOST_VERSIONS = 2**32 - 1
HEAD_SIZE = _HEAD.size


class StepRecord(NamedTuple):
    """The step that was last finished. Times are epoch ns; durations ns; 0 where unknown.

    ``own_ns`` is the time that the probe itself has taken so far in ``hook_count`` hooks.
    """

    step: int
    ended_ns: int
    last_ns: int
    longest_ns: int
    hook_count: int
    own_ns: int


class PhaseRecord(NamedTuple):
    """What the rank does beside plain training steps, e.g. ``checkpoint``; empty for those. ``depth``: how many are nested."""

    since_ns: int
    depth: int
    name: bytes


class MemoryRecord(NamedTuple):
    """The allocator's figures of the rank's device, bytes; ``retry_count``: how often it had to free its cache first."""

    at_ns: int
    allocated_bytes: int
    reserved_bytes: int
    retry_count: int


class EndingRecord(NamedTuple):
    """How the process ended, as it said itself; the last word counts.

    ``kind`` is one of the ``END_*`` numbers; ``code`` the exit code, -1 where unknown; ``oom_kills`` counts the processes of
    its cgroup that the kernel had killed for memory, -1 where unknown.
    """

    at_ns: int
    kind: int
    code: int
    oom_kills: int
    where: bytes
    text: bytes


END_RETURNED = 1
"""The interpreter came to its end; the code is that of `sys.exit`, if that was called."""
END_AT_ONCE = 2
"""`os._exit`."""
END_EXCEPTION = 3
"""An exception that nobody caught."""


class ReplicaRecord(NamedTuple):
    """The replica that the rank holds; see `replica_format.py`. Zeros at the end may be missing."""

    body: bytes


Record = StepRecord | PhaseRecord | MemoryRecord | EndingRecord | ReplicaRecord

_LAYOUT: dict[type[Record], tuple[int, struct.Struct]] = {
    StepRecord: (64, struct.Struct("<QQQQQQ")),
    PhaseRecord: (128, struct.Struct("<QI36s")),
    MemoryRecord: (192, struct.Struct("<QQQQ")),
    EndingRecord: (256, struct.Struct("<QIiq512s1024s")),
    ReplicaRecord: (1856, struct.Struct(f"<{REPLICA_SIZE}s")),
}
"""Where each record lies."""


class TornError(Exception):
    """A record was being written."""


class NotAPageError(Exception):
    """The bytes are no page of a version that is known here."""


def encode_header(pid: int, created_ns: int) -> bytes:
    """The first bytes of a page."""
    return _HEADER.pack(MAGIC, PAGE_SIZE, pid, created_ns)


def decode_header(page: bytes) -> tuple[int, int]:
    """Process number and time of creation, epoch ns.

    Raises:
        NotAPageError: if it is none.
    """
    if len(page) < PAGE_SIZE or page[: len(MAGIC)] != MAGIC:
        raise NotAPageError
    _, _, pid, created_ns = _HEADER.unpack_from(page)
    return pid, created_ns


seal = _HEAD.pack
"""Version and checksum, as they stand before a record's values."""


def layout_of(kind: type[Record]) -> tuple[int, struct.Struct]:
    """Where a record lies, and the form of its values, which stand behind version and checksum."""
    return _LAYOUT[kind]


def encode_values(kind: type[Record], values: tuple[Any, ...], version: int) -> tuple[int, bytes]:
    """Where a record of these values goes, and its bytes. ``version`` differs from the one before."""
    offset, payload = _LAYOUT[kind]
    body = payload.pack(*values)
    number = version % MOST_VERSIONS + 1
    return offset, _HEAD.pack(number, zlib.crc32(body, number)) + body


def encode_record(record: Record, version: int) -> tuple[int, bytes]:
    """The same for a record that is at hand."""
    return encode_values(type(record), tuple(record), version)


def decode_record(kind: type[Record], page: bytes) -> Record | None:
    """A record of a page, None if it was never written.

    Raises:
        TornError: if it was being written while the page was copied.
    """
    offset, payload = _LAYOUT[kind]
    version, checksum = _HEAD.unpack_from(page, offset)
    body = page[offset + _HEAD.size : offset + _HEAD.size + payload.size]
    if version == 0 and checksum == 0 and not any(body):
        return None
    if zlib.crc32(body, version) != checksum:
        raise TornError
    values: list[Any] = [value.rstrip(b"\0") if isinstance(value, bytes) else value for value in payload.unpack(body)]
    return kind(*values)
