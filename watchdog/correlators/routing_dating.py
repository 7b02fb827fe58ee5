"""Dates illnesses by all rows at hand, where a watch that sees one row after the other could not.

What is hot from the first row on and rises within the series has a before after all: the rise is what somebody changed.
"""

from collections.abc import Sequence
from dataclasses import replace

from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.model.routing import RoutingRow
from pardbg.watchdog.routing.figures import ep_loads
from pardbg.watchdog.routing.illness import Illness
from pardbg.watchdog.routing.step_up import find_step_up

MOST_ROWS_EARLIER = 32
"""A watch sees sums over sixteen rows: it dates a rise that is small too late by so much at most."""


def redate(illness: Illness, rows: Sequence[RoutingRow]) -> Illness:
    """The same, or since a later rise where it was there all along, or since one a little earlier. ``rows``: its layer's."""
    if illness.kind is not Kind.EP_IMBALANCE or not rows or not illness.ep_ranks:
        return illness
    steps, ratios = [], []
    for row in rows:
        loads = ep_loads(row.counts, row.ep_size) if sum(row.counts) else None
        if loads is not None and max(illness.ep_ranks) < len(loads):
            steps.append(row.step)
            ratios.append(max(loads[rank] for rank in illness.ep_ranks) * len(loads))
    rise = find_step_up(ratios)
    if rise is None:
        return illness
    is_all_along = illness.since_step <= rows[0].step
    is_a_little_earlier = any(step == illness.since_step for step in steps[rise.place : rise.place + MOST_ROWS_EARLIER])
    if not is_all_along and not is_a_little_earlier:
        return illness
    return replace(illness, since_step=steps[rise.place], usual=rise.before)
