"""The file `routing` of a rank (`collectors/probe/routing_format.py`) -> a `RoutingSeries`.

Only steps that are newer than one wanted are looked at, from the newest back, so that a look at a file of 4 MB costs a few
kilobytes. A slot that was being written ends the walk: it will be there in the next look, or has been overwritten. One slot,
1.3 MB at most, is read at a time; of all that is wanted no more is taken than `MOST_COUNTS` numbers, 40 bytes each, the
newest first.
"""

import math
import struct
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple, TypeVar

from pardbg.collectors.probe.routing_format import (
    COUNT_SIZE,
    FIGURE_COUNT,
    FIGURES,
    HEADER_SIZE,
    MAGIC,
    NOTE_AT,
    NOTE_SIZE,
    ROW_SIZE,
    TABLE_AT,
    Header,
    LayerLine,
    NotRoutingError,
    TornError,
    decode_header,
    decode_line,
    decode_note,
    decode_slot,
    lay_out,
)
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.routing import RoutingRow, RoutingSeries
from pardbg.watchdog.model.text import printable_text

MOST_COPIES = 5
MOST_COUNTS = 2**20
"""In one look. No probe keeps more of them; a look that must cost less memory takes fewer."""
MOST_STEP = 2**63 - 1
_SEAL_SIZE, _NAME = 8, MAGIC[:-1]
_Value = TypeVar("_Value")

Cut = Callable[[int, int], bytes]
"""The bytes of a file as they are now: offset, size; fewer where it ends."""


def is_routing_page(head: bytes) -> bool:
    """Whether a file begins as one of routing does, also in a version that cannot be read here."""
    return head[_SEAL_SIZE:].startswith(_NAME)


def parse_routing_page(data: bytes, pid: int | None = None, after_step: int = -1) -> RoutingSeries:
    """Reads a file that is at hand as a whole. See `read_routing`."""
    return read_routing(lambda offset, size: data[offset : offset + size], pid, after_step)


def read_routing(cut: Cut, pid: int | None = None, after_step: int = -1, most_counts: int = MOST_COUNTS) -> RoutingSeries:
    """Reads the steps after ``after_step``, oldest first.

    Args:
        cut: gives the bytes; asked again, at most `MOST_COPIES` times, for a part that is torn.
        pid: whose file it must be, None for anybody's.
        after_step: number of a step as the probe counts; -1 for all that are kept.
        most_counts: where more are wanted, the oldest steps are left out; the newest never is.

    Raises:
        ParseError: if it is none, was replaced by another, is another process's, or a part was torn in every copy.
    """
    try:
        header = decode_header(cut(0, HEADER_SIZE))
    except NotRoutingError as error:
        raise ParseError("no file of routing that is known here, or one that was replaced") from error
    if pid is not None and header.pid != pid:
        raise ParseError(f"routing of process {header.pid}, not of {pid}")
    lines = [_retry(cut, TABLE_AT + place * ROW_SIZE, ROW_SIZE, decode_line) for place in range(header.layers)]
    if any(line.experts > header.experts or line.number < 0 for line in lines):
        raise ParseError("a layer with more experts than the file of routing has room for")
    most_steps = max(1, most_counts // max(1, header.layers * header.experts))
    steps = list(islice(_newest_first(cut, header, after_step), most_steps))
    return RoutingSeries(
        rows=tuple(row for step in reversed(steps) for row in _read_rows(step, header, lines)),
        names={line.number: printable_text(line.name.decode(errors="replace")) for line in lines if line.name},
        frozen=tuple(sorted({line.number for line in lines if line.is_frozen})),
        settled=tuple(sorted({line.number for line in lines if line.is_frozen and line.is_settled})),
    )


class _Slot(NamedTuple):
    step: int
    loss: float
    data: bytes


def _newest_first(cut: Cut, header: Header, after_step: int) -> Iterator[_Slot]:
    layout = lay_out(header.layers, header.experts, header.slots)
    step_count = _retry(cut, NOTE_AT, NOTE_SIZE, decode_note)
    before = MOST_STEP + 1
    for ordinal in range(step_count - 1, max(-1, step_count - 1 - header.slots), -1):
        data = cut(layout.slot_at(ordinal, header.slots), layout.slot_size)
        try:
            head = decode_slot(data)
        except TornError:
            return
        if head.ordinal != ordinal or not after_step < head.step < before:
            return
        before = head.step
        yield _Slot(head.step, head.loss, data)


def _read_rows(slot: _Slot, header: Header, lines: list[LayerLine]) -> Iterator[RoutingRow]:
    layout = lay_out(header.layers, header.experts, header.slots)
    figures = struct.unpack_from(f"<{header.layers * FIGURE_COUNT}d", slot.data, layout.figures_at)
    for place, line in enumerate(lines):
        counts = struct.unpack_from(f"<{line.experts}I", slot.data, layout.counts_at + place * header.experts * COUNT_SIZE)
        own = figures[place * FIGURE_COUNT : (place + 1) * FIGURE_COUNT]
        known = {name: value if math.isfinite(value) else None for name, value in zip(FIGURES, own, strict=True)}
        if line.experts == 0 or known["tokens"] is None:  # the layer was not run in this step
            continue
        yield RoutingRow(
            step=slot.step,
            layer=line.number,
            counts=counts,
            counts_are_kept=line.leaves_out_drops and known["predicted_dropped"] is None and bool(known["dropped"]),
            top_k=line.top_k or None,
            ep_size=line.ep_size or None,
            loss=slot.loss if math.isfinite(slot.loss) else None,
            **known,
        )


def _retry(cut: Cut, offset: int, size: int, decode: Callable[[bytes], _Value]) -> _Value:
    for _ in range(MOST_COPIES):
        try:
            return decode(cut(offset, size))
        except TornError:
            continue
    raise ParseError("a part of the file of routing is torn: it was being written all the time")
