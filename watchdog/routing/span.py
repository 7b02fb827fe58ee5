"""Several steps of one layer as one row, to tell figures of a stretch of time: chance evens out, an illness does not."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from pardbg.watchdog.model.routing import RoutingRow

_Value = TypeVar("_Value", int, float)


def sum_up(rows: Sequence[RoutingRow]) -> RoutingRow:
    """Counts and drops summed over rows of as many experts; of norms the largest; of the rest the last known. Not of none."""
    last = rows[-1]
    alike = [row for row in rows if len(row.counts) == len(last.counts)]
    return RoutingRow(
        step=last.step,
        layer=last.layer,
        counts=tuple(map(sum, zip(*(row.counts for row in alike), strict=True))),
        counts_are_kept=any(row.counts_are_kept for row in alike),
        dropped=_total([row.dropped for row in alike]),
        predicted_dropped=_total([row.predicted_dropped for row in alike]),
        capacity=_newest(row.capacity for row in alike),
        top_k=_newest(row.top_k for row in alike),
        tokens=_total([row.tokens for row in alike]),
        ep_size=_newest(row.ep_size for row in alike),
        router_grad_norm=max((row.router_grad_norm for row in alike if row.router_grad_norm is not None), default=None),
    )


def _total(values: list[float | None]) -> float | None:
    """None where one is not known: it would be set against the counts of all."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _newest(values: Iterable[_Value | None]) -> _Value | None:
    return next((value for value in reversed(list(values)) if value is not None), None)
