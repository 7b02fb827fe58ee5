"""The series of many ranks into one of the whole job, by step and layer."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from pardbg.watchdog.model.routing import RoutingRow, RoutingSeries

Number = TypeVar("Number", int, float)
MOST_BEHIND = 16
"""Steps. Ranks that train together are one or two apart."""


def merge(series: Sequence[RoutingSeries]) -> RoutingSeries:
    """The job's series, in the order of steps.

    Counts, drops and tokens are summed over ranks; entropy, z and losses are means weighted by assignments; of the gradient
    norms, of which each rank holds the same or none, the largest is taken. A step counts when every rank that has the layer
    has come to it: one that some have not yet reached would look like other data than it is; a rank that is far behind has
    ended, and is not waited for. Ranks may own different layers (pipeline stages). Where they differ in the number of experts
    of a layer, the most frequent number holds.
    """
    known = [one for one in series if one.rows]
    reached = _reached_by_all(known)
    together: dict[tuple[int, int], list[RoutingRow]] = {}
    for row in (row for one in known for row in one.rows):
        if row.step <= reached[row.layer]:
            together.setdefault((row.step, row.layer), []).append(row)
    return RoutingSeries(
        rows=tuple(_sum(rows) for _, rows in sorted(together.items())),
        names={layer: name for one in series for layer, name in one.names.items()},
        frozen=tuple(sorted({layer for one in series for layer in one.frozen})),
        settled=tuple(sorted({layer for one in series for layer in one.settled})),
    )


def _reached_by_all(series: Sequence[RoutingSeries]) -> dict[int, int]:
    """Newest step of each layer that every rank with this layer has come to, but for those that were left behind."""
    ends: dict[int, list[int]] = {}
    for one in series:
        newest: dict[int, int] = {}
        for row in one.rows:
            newest[row.layer] = max(newest.get(row.layer, row.step), row.step)
        for layer, step in newest.items():
            ends.setdefault(layer, []).append(step)
    return {layer: min(step for step in steps if step >= max(steps) - MOST_BEHIND) for layer, steps in ends.items()}


def _sum(rows: list[RoutingRow]) -> RoutingRow:
    if len(rows) == 1:
        return rows[0]
    rows = _of_one_size(rows)
    weights = [sum(row.counts) for row in rows]
    return RoutingRow(
        step=rows[0].step,
        layer=rows[0].layer,
        counts=tuple(map(sum, zip(*(row.counts for row in rows), strict=True))),
        counts_are_kept=any(row.counts_are_kept for row in rows),
        dropped=_total(rows, lambda row: row.dropped),
        predicted_dropped=_total(rows, lambda row: row.predicted_dropped),
        capacity=_largest(row.capacity for row in rows),
        top_k=_largest(row.top_k for row in rows),
        tokens=_total(rows, lambda row: row.tokens),
        entropy=_mean(rows, weights, lambda row: row.entropy),
        z=_mean(rows, weights, lambda row: row.z),
        aux_loss=_mean(rows, weights, lambda row: row.aux_loss),
        ep_size=_largest(row.ep_size for row in rows),
        router_grad_norm=_largest(row.router_grad_norm for row in rows),
        loss=_mean(rows, weights, lambda row: row.loss),
    )


def _of_one_size(rows: list[RoutingRow]) -> list[RoutingRow]:
    sizes = [len(row.counts) for row in rows]
    usual = max(sizes, key=sizes.count)
    return [row for row, size in zip(rows, sizes, strict=True) if size == usual]


def _largest(values: Iterable[Number | None]) -> Number | None:
    return max((value for value in values if value is not None), default=None)


def _total(rows: list[RoutingRow], field: Callable[[RoutingRow], float | None]) -> float | None:
    """The sum; None where one rank does not know its part: a sum of some would be set against the assignments of all."""
    parts = [part for row in rows if (part := field(row)) is not None]
    return sum(parts) if len(parts) == len(rows) else None


def _mean(rows: list[RoutingRow], weights: list[int], field: Callable[[RoutingRow], float | None]) -> float | None:
    """Mean over the ranks that know it; all alike where none has an assignment (a loss is known without any)."""
    known = [(value, weight) for row, weight in zip(rows, weights, strict=True) if (value := field(row)) is not None]
    whole = sum(weight for _, weight in known)
    if not whole:
        return sum(value for value, _ in known) / len(known) if known else None
    return sum(value * weight for value, weight in known) / whole
