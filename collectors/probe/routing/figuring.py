"""The sums of a step -> the figures that are published of it, one line a layer. NaN: not known. On the host."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from .layer import AUX, DROPPED, ENTROPY, LOSS, PREDICTED, SAMPLED, Seen, Z

_NAN = math.nan


class Noted(NamedTuple):
    """What the host knew of a layer when the step ended."""

    seen: Seen
    experts: int
    top_k: int


class Totals(NamedTuple):
    """Of the counts of one layer: those of its experts, and those of numbers that are none."""

    kept: float
    beyond: float


def make_figures(sums: Sequence[float], totals: Totals, noted: Noted) -> tuple[float, ...]:
    """The figures of one layer, in the order of ``FIGURES``, up to the norm of its gradient.

    Args:
        sums: its row up to the first count.
        totals: of its counts.
        noted: what the host knew. Where a graph of CUDA was replayed, it knows nothing, and the counts say the tokens.
    """
    (seen, _, top_k), kept = noted, totals.kept
    tokens = seen.tokens if seen.passes else kept / top_k if kept and top_k else _NAN
    return (
        tokens,
        _drops(sums, totals, seen),
        sums[PREDICTED] if seen.predicted and seen.predicted == seen.passes else _NAN,
        seen.capacity / seen.passes if seen.capacity else _NAN,
        sums[ENTROPY] / sums[SAMPLED] if sums[SAMPLED] else _NAN,
        sums[Z] / sums[SAMPLED] if sums[SAMPLED] else _NAN,
        sums[AUX] / seen.with_aux if seen.with_aux else _NAN,
    )


def find_loss(sums: Sequence[float], seen: Seen) -> float:
    """The mean of the losses that were reported in the step; they lie with the first layer."""
    return sums[LOSS] / seen.with_loss if seen.with_loss else _NAN


def _drops(sums: Sequence[float], totals: Totals, seen: Seen) -> float:
    """Numbers out of range are drops; so is what is missing where only the choices that were kept can be counted."""
    if not seen.passes or seen.with_drops != seen.passes:
        return _NAN
    missing = max(0.0, seen.wanted - totals.kept) if seen.kept_only else totals.beyond
    return sums[DROPPED] + missing
