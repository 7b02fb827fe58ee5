"""A GPU series: JSON lines with time, rank and what the GPU did (contract). Several ranks may share a file."""

import math
from collections.abc import Iterable, Iterator

import msgspec

from pardbg.collectors.gpu.points import GpuPoint
from pardbg.collectors.gpu.shape import summarise
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.device import DeviceJoin, DeviceSeen
from pardbg.watchdog.model.members import MAX_WORLD_SIZE

_MOST_BITS = 2**32
_HEAD_LINES = 8


class _Line(GpuPoint, frozen=True, kw_only=True):
    rank: int | None = None


class _Keys(msgspec.Struct):
    """The keys that no other JSON lines have together."""

    t: float
    util: float | None
    power_w: float | None = None
    sm_clock_mhz: float | None = None


_LINES = msgspec.json.Decoder(_Line)
_KEYS = msgspec.json.Decoder(_Keys)


def is_gpu_series(head: bytes) -> bool:
    """Whether text begins with lines of such a file; single damaged ones do not matter."""
    return any(_is_sample(line) for line in head.split(b"\n", _HEAD_LINES)[:_HEAD_LINES])


def parse_gpu_series(data: bytes) -> tuple[tuple[int | None, DeviceSeen], ...]:
    """Sums up the series of each rank in it; None is the rank that the file's name tells. Damaged lines are left out.

    Raises:
        ParseError: if no line can be used.
    """
    by_rank: dict[int | None, list[GpuPoint]] = {}
    for line in data.splitlines():
        try:
            read = _LINES.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if _is_sane(read):
            by_rank.setdefault(read.rank, []).append(read)
    if not by_rank:
        raise ParseError("no line of it is a sample of a GPU", remedy="each line needs at least t and util, as in the contract")
    return tuple((rank, _sum_up(points)) for rank, points in by_rank.items())


def encode_gpu_series(rank: int | None, points: Iterable[GpuPoint]) -> bytes:
    """Writes a series so that `parse_gpu_series` reads it."""
    return b"".join(_encode_lines(rank, points))


def _encode_lines(rank: int | None, points: Iterable[GpuPoint]) -> Iterator[bytes]:
    whose = {} if rank is None else {"rank": rank}
    for point in points:
        yield msgspec.json.encode({"t": point.t, **whose, **msgspec.to_builtins(point)}) + b"\n"


def _is_sample(line: bytes) -> bool:
    try:
        keys = _KEYS.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return any(value is not None for value in (keys.util, keys.power_w, keys.sm_clock_mhz))


def _is_sane(line: _Line) -> bool:
    has_rank = line.rank is None or 0 <= line.rank < MAX_WORLD_SIZE
    return has_rank and math.isfinite(line.t) and 0 <= (line.clock_reasons or 0) < _MOST_BITS


def _sum_up(points: list[GpuPoint]) -> DeviceSeen:
    seen = summarise(sorted(points, key=lambda point: point.t))
    return msgspec.structs.replace(seen, joined_by=DeviceJoin.FILE)
