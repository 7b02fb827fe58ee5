"""Routing counts: JSON lines with a step, a layer and what each expert was assigned (contract). Ranks may share a file.

What a line must say, and what happens to a value that no router gives, is in `routing_line.py`; what could not be used is told
with the field at fault. Cost: some 30 us a line of 64 experts. Memory: of a larger file than `MOST_COUNTS` takes, only the
newest lines are read.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby

import msgspec

from pardbg.collectors.parsing.routing_faults import Faults
from pardbg.collectors.parsing.routing_line import Line, is_of_routing, read_line
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.model.routing import RoutingRow, RoutingSeries
from pardbg.watchdog.model.routing_order import in_order

MOST_COUNTS = 4_000_000  # experts x layers x steps of one file: 150 MB as Python's integers
LEAST_LINES_ALIKE = 8
"""Lines on end with another number of experts: fewer are damage, so many are a model that was changed."""
_HEAD_BYTES, _HEAD_LINES = 64 * 1024, 8


class RoutingFile(msgspec.Struct, frozen=True, kw_only=True):
    """The series of each rank in a file (None: whose the file's name says), and what of it was not used."""

    series: dict[int | None, RoutingSeries]
    losses: tuple[Absence, ...] = ()


def is_routing_lines(head: bytes) -> bool:
    """Whether text begins with lines of such a file, or half of it at least are some: what else is there is damage."""
    lines = [line for line in head[:_HEAD_BYTES].split(b"\n") if line.strip()]
    if not any(b'"counts"' in line for line in lines):
        return False
    return any(map(is_of_routing, lines[:_HEAD_LINES])) or 2 * sum(map(is_of_routing, lines)) >= len(lines)


def parse_routing_lines(data: bytes) -> RoutingFile:
    """Reads the series of each rank. What cannot be used is left out and told.

    Raises:
        ParseError: if no line can be used.
    """
    lines: list[tuple[int, Line]] = []
    faults, counted, unread_bytes = Faults(), 0, 0
    for data_of_line, begins in _lines_from_the_end(data):
        line, bad = read_line(data_of_line)
        counted += len(line.counts) if line is not None else 0
        if counted > MOST_COUNTS and lines:
            unread_bytes = begins + len(data_of_line)
            break
        faults.add(begins, bad, is_used=line is not None)
        if line is not None:
            lines.append((begins, line))
    if not lines:
        told = f": {faults.first(data)}" if faults.lines else ""
        raise ParseError(
            f"no line of it counts what experts were assigned{told}", remedy="each line needs step, layer and counts"
        )
    lines.reverse()
    fitting = _of_usual_size(lines)
    odd = [begins for begins, line in lines if id(line) not in fitting]
    for begins in reversed(odd):
        faults.leave_out(begins, "counts has another length than in the other lines of its layer")
    return RoutingFile(
        series=_by_rank([line for _, line in lines if id(line) in fitting]),
        losses=(*faults.told(data), *_unread(unread_bytes, len(data))),
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


def _of_usual_size(lines: list[tuple[int, Line]]) -> set[int]:
    """The lines (`id`) that have as many experts as their layer usually has, or for `LEAST_LINES_ALIKE` lines on end.

    A layer is given other experts by whoever changes the model, once; damaged lines come singly.
    """
    of_layer: dict[tuple[int | None, int], list[Line]] = {}
    for _, line in lines:
        of_layer.setdefault((line.rank, line.layer), []).append(line)
    fitting: set[int] = set()
    for found in of_layer.values():
        usual, _ = Counter(len(line.counts) for line in found).most_common(1)[0]
        for size, run in groupby(found, key=lambda line: len(line.counts)):
            alike = [id(line) for line in run]
            fitting.update(alike if size == usual or len(alike) >= LEAST_LINES_ALIKE else ())
    return fitting


def _by_rank(lines: list[Line]) -> dict[int | None, RoutingSeries]:
    rows: dict[int | None, list[RoutingRow]] = {}
    for line in lines:
        rows.setdefault(line.rank, []).append(_row(line))
    return {rank: RoutingSeries(rows=in_order(found)) for rank, found in rows.items()}


def _row(line: Line) -> RoutingRow:
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


def _total(values: float | list[float] | None) -> float | None:
    return sum(values) if isinstance(values, list) else values


def _unread(unread_bytes: int, size: int) -> Iterator[Absence]:
    if unread_bytes > 0:
        read = f"{(size - unread_bytes) / 1e6:.0f} of {size / 1e6:.0f} MB"
        told = f"only the newest {read} were read: it has more than {MOST_COUNTS:,} counts"
        yield Absence(reason=AbsenceReason.SKIPPED, detail=told)
