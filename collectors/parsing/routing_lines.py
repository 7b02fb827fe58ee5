"""Routing counts: JSON lines with a step, a layer and what each expert was assigned (contract). Ranks may share a file.

What a line says beyond that is optional; a line with any value that no router gives is left out whole. Cost: some 30 us a line
of 64 experts. Memory: of a larger file than `MOST_COUNTS` takes, only the newest lines are read.
"""

import math
from collections import Counter
from collections.abc import Iterator

import msgspec

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.members import MAX_WORLD_SIZE
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.model.routing import RoutingRow, RoutingSeries
from pardbg.watchdog.model.routing_order import in_order

MOST_COUNTS = 4_000_000  # experts x layers x steps of one file: 150 MB as Python's integers
MOST_EXPERTS = 16_384
MOST_LAYERS = 4_096
_LARGEST = 2**53  # beyond it, numbers of other languages are not exact
_HEAD_LINES = 8

_Number = int | float


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    step: int
    layer: int
    counts: list[_Number]
    rank: int | None = None
    dropped: _Number | list[_Number] | None = None
    predicted_dropped: _Number | list[_Number] | None = None
    capacity: _Number | None = None
    top_k: int | None = None
    tokens: _Number | None = None
    entropy: _Number | None = None
    z: _Number | None = None
    aux_loss: _Number | None = None
    ep_size: int | None = None
    router_grad_norm: _Number | None = None
    loss: _Number | None = None


class _Keys(msgspec.Struct):
    """The keys that no other JSON lines have together."""

    step: int
    layer: int
    counts: list[msgspec.Raw]


_LINES = msgspec.json.Decoder(_Line)
_KEYS = msgspec.json.Decoder(_Keys)
_UNREADABLE = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError)  # of UTF-8, too


class RoutingFile(msgspec.Struct, frozen=True, kw_only=True):
    """The series of each rank in a file (None: whose the file's name says), and what of it was not used."""

    series: dict[int | None, RoutingSeries]
    losses: tuple[Absence, ...] = ()


def is_routing_lines(head: bytes) -> bool:
    """Whether text begins with lines of such a file; single damaged ones do not matter."""
    return any(b'"counts"' in line and _has_keys(line) for line in head.split(b"\n", _HEAD_LINES)[:_HEAD_LINES])


def parse_routing_lines(data: bytes) -> RoutingFile:
    """Reads the series of each rank. Damaged lines are left out and counted.

    Raises:
        ParseError: if no line can be used.
    """
    lines: list[_Line] = []
    bad, counted, unread_bytes = 0, 0, 0
    for line, begins in _lines_from_the_end(data):
        read = _read(line)
        if read is None:
            bad += 1
            continue
        counted += len(read.counts)
        if counted > MOST_COUNTS and lines:
            unread_bytes = begins + len(line)
            break
        lines.append(read)
    if not lines:
        raise ParseError("no line of it counts what experts were assigned", remedy="each line needs step, layer and counts")
    usual = _usual_experts(lines)
    fitting = [line for line in reversed(lines) if len(line.counts) == usual[line.layer]]
    return RoutingFile(
        series=_by_rank(fitting),
        losses=tuple(_losses(bad + len(lines) - len(fitting), bad + len(lines), unread_bytes, len(data))),
    )


def _lines_from_the_end(data: bytes) -> Iterator[tuple[bytes, int]]:
    """The lines that are not blank, the last one first, each with where it begins; only one of them is copied at a time."""
    end = len(data)
    while end > 0:
        begins = data.rfind(b"\n", 0, end) + 1
        line = data[begins:end]
        if line.strip():
            yield line, begins
        end = begins - 1


def _has_keys(line: bytes) -> bool:
    try:
        _KEYS.decode(line)
    except _UNREADABLE:
        return False
    return True


def _read(line: bytes) -> _Line | None:
    try:
        read = _LINES.decode(line)
    except _UNREADABLE:
        return None
    return read if _is_sane(read) else None


def _is_sane(line: _Line) -> bool:
    experts = len(line.counts)
    return (
        2 <= experts <= MOST_EXPERTS
        and 0 <= line.step < _LARGEST
        and 0 <= line.layer < MOST_LAYERS
        and (line.rank is None or 0 <= line.rank < MAX_WORLD_SIZE)
        and (line.top_k is None or 1 <= line.top_k <= experts)
        and (line.ep_size is None or 1 <= line.ep_size <= experts)
        and _are_counts(line.counts)
        and all(_is_amount(value) for value in (line.capacity, line.tokens, line.router_grad_norm, line.entropy, line.z))
        and all(_is_amount(value) for values in (line.dropped, line.predicted_dropped) for value in _listed(values, experts))
        and all(value is None or (math.isfinite(value) and abs(value) < _LARGEST) for value in (line.aux_loss, line.loss))
    )


def _are_counts(values: list[_Number]) -> bool:
    """Whole numbers, be they written with a point; shares and means are no counts."""
    is_in_range = min(values) >= 0 and max(values) < _LARGEST
    return is_in_range and all(type(value) is int or value == int(value) for value in values)


def _is_amount(value: _Number | None) -> bool:
    return value is None or 0 <= value < _LARGEST


def _listed(values: _Number | list[_Number] | None, experts: int) -> list[_Number | None]:
    """What a line says of drops, be it one number or one for each expert; of another number of experts it says nonsense."""
    if not isinstance(values, list):
        return [values]
    return [*values] if len(values) == experts else [-1]


def _usual_experts(lines: list[_Line]) -> dict[int, int]:
    """How many experts each layer has: a layer does not change them, damaged lines do."""
    seen: dict[int, Counter[int]] = {}
    for line in lines:
        seen.setdefault(line.layer, Counter())[len(line.counts)] += 1
    return {layer: counts.most_common(1)[0][0] for layer, counts in seen.items()}


def _by_rank(lines: list[_Line]) -> dict[int | None, RoutingSeries]:
    rows: dict[int | None, list[RoutingRow]] = {}
    for line in lines:
        rows.setdefault(line.rank, []).append(_row(line))
    return {rank: RoutingSeries(rows=in_order(found)) for rank, found in rows.items()}


def _row(line: _Line) -> RoutingRow:
    return RoutingRow(
        step=line.step,
        layer=line.layer,
        counts=tuple(map(int, line.counts)),
        dropped=_total(line.dropped),
        predicted_dropped=_total(line.predicted_dropped),
        capacity=line.capacity,
        top_k=line.top_k,
        tokens=line.tokens,
        entropy=line.entropy,
        z=line.z,
        aux_loss=line.aux_loss,
        ep_size=line.ep_size,
        router_grad_norm=line.router_grad_norm,
        loss=line.loss,
    )


def _total(values: _Number | list[_Number] | None) -> float | None:
    return sum(values) if isinstance(values, list) else values


def _losses(bad: int, lines: int, unread_bytes: int, size: int) -> Iterator[Absence]:
    if bad:
        told = f"{bad} of {lines} lines are damaged, or hold values that no router gives: left out"
        yield Absence(reason=AbsenceReason.UNREADABLE, detail=told)
    if unread_bytes > 0:
        read = f"{(size - unread_bytes) / 1e6:.0f} of {size / 1e6:.0f} MB"
        told = f"only the newest {read} were read: it has more than {MOST_COUNTS:,} counts"
        yield Absence(reason=AbsenceReason.SKIPPED, detail=told)
