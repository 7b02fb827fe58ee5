"""What a rank's page says of the replica that it holds: fingerprints of its weights and of its data, at some of its steps.

Little-endian, in one record of the page (`page_format.py`), which is written as a whole. A head; then a moment in each of
`SLOTS` slots; then, of the two newest moments, a fingerprint of each parameter that was looked at.

Which steps: 0, 1, 2, 4 ... 32, then every 64th, the same on all ranks. Which are kept: the first seven for ever; of the later
ones those whose number over 64 is odd, the newest four; of the others those whose half is odd, the newest four; and so on. So
what is old is kept ever more sparsely, and of any age something is there.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

EVERY = 64
"""Steps between two looks."""
MOST_PARTS = 64
"""Parameters that are looked at."""
_EARLY = EVERY.bit_length()  # 0 and the powers of two below it
_DEEPEST, _EACH = 10, 4
SLOTS = _EARLY + (_DEEPEST + 1) * _EACH
NEWEST = 2

FORM = 1
_HEAD = struct.Struct("<IIIIIIQQ")
_MOMENT = struct.Struct("<IIII")
_PARTS = struct.Struct(f"<I{MOST_PARTS}I")
SIZE = _HEAD.size + SLOTS * _MOMENT.size + NEWEST * _PARTS.size


class Head(NamedTuple):
    """Which replica it is.

    Attributes:
        ordinal: the how-manieth module that this process holds a replica of; it looks at one at a time.
        group: a digest of the global ranks that hold the others; 0 if none is looked at.
        size: how many ranks these are, this one among them.
        tensors: trainable parameters it has; ``parts``: so many of them are looked at.
        seen: numbers that are looked at in these; ``whole``: numbers that all its trainable parameters have.
    """

    ordinal: int
    group: int
    size: int
    tensors: int
    parts: int
    seen: int
    whole: int


class Moment(NamedTuple):
    """One look. ``data`` is 0 where it was not understood; ``forward`` counts the passes that DDP synchronises, from 1."""

    step: int
    forward: int
    weights: int
    data: int


class Parts(NamedTuple):
    """The fingerprints of the parameters at a step."""

    step: int
    sums: tuple[int, ...]


NOTHING = Head(0, 0, 0, 0, 0, 0, 0)
_EMPTY = Moment(0, 0, 0, 0)


def is_due(step: int) -> bool:
    """Whether all ranks look after this step."""
    return step % EVERY == 0 if step >= EVERY else step & (step - 1) == 0


def slot_of(step: int) -> int:
    """Where a moment is kept until another takes its place."""
    if step < EVERY:
        return step.bit_length()
    number = step // EVERY
    depth = min((number & -number).bit_length() - 1, _DEEPEST)
    place = number >> (depth + 1 if depth < _DEEPEST else depth)
    return _EARLY + depth * _EACH + place % _EACH


def encode(head: Head, moments: dict[int, Moment], newest: Sequence[Parts]) -> bytes:
    """The record. ``moments`` by slot; of ``newest`` the last `NEWEST`, each with as many sums as the head says."""
    body = bytearray(SIZE)
    _HEAD.pack_into(body, 0, FORM, *head[:5], *head[5:])
    for slot, moment in moments.items():
        _MOMENT.pack_into(body, _HEAD.size + slot * _MOMENT.size, *moment)
    for place, parts in enumerate(newest[-NEWEST:]):
        at = _HEAD.size + SLOTS * _MOMENT.size + place * _PARTS.size
        _PARTS.pack_into(body, at, parts.step, *parts.sums, *[0] * (MOST_PARTS - len(parts.sums)))
    return bytes(body)


def decode(body: bytes) -> tuple[Head, list[Moment], list[Parts]] | None:
    """What a record says, moments oldest first; None if it is of another form. Zeros at its end may be missing.

    Nothing of it is checked but its form: the bytes may be anybody's.
    """
    body = body.ljust(SIZE, b"\0")
    form, *values = _HEAD.unpack_from(body)
    if form != FORM or len(body) != SIZE:
        return None
    head, at = Head(*values), _HEAD.size + SLOTS * _MOMENT.size
    moments = [Moment(*found) for found in _MOMENT.iter_unpack(body[_HEAD.size : at])]
    newest = [(step, sums) for step, *sums in _PARTS.iter_unpack(body[at:])]
    kept = min(head.parts, MOST_PARTS)
    return (
        head,
        sorted(moment for moment in moments if moment != _EMPTY),
        [Parts(step, tuple(sums[:kept])) for step, sums in newest if any(sums)],
    )
