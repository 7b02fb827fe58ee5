"""What does not add up in the counts of a layer. Never an alarm: the fault may be in the counting, and a note says so.

Each doubt needs eight rows on end; texts are complete sentences without the layer, which the caller adds.
"""

from collections import deque
from math import inf
from operator import ge

from pardbg.watchdog.model.routing import RoutingRow
from pardbg.watchdog.routing.figures import LayerFigures, wanted

ROWS = 8
DROPS_DIFFER, DROPS_DIFFER_RELATIVE = 0.02, 0.25
SUM_DIFFERS = 0.01
CAPACITY_FACTOR_MAX = 100
LOAD_CHANGES = 0.1
SURE_OF_NOTHING = 0.995
TWICE = 2.0

DROPS_DISAGREE = (
    "The drops of the mask that was applied and those that counts and capacity predict differ: the capacity is not the one "
    "that the counts are held against, or the mask was made from something else (logits instead of probabilities)."
)
COUNTED_TWICE = (
    "Counts are twice tokens x top-k: forward passes of recomputation are counted too. No drop rate is derived from them."
)
NEVER_CLEARED = "Counts only ever grow: they are not cleared between steps. No drop rate is derived from them."
AFTER_DROPS = "Counts are tokens x top-k less the drops: they were taken after dropping. No drop rate is derived from them."
SUM_IS_OFF = "Counts do not sum to tokens x top-k. No drop rate is derived from them."
AUX_CONSTANT = "The balancing loss stays exactly the same while the load changes: it does not see the routing."
CAPACITY_IMPLAUSIBLE = "The capacity is more than 100 times the mean load: it never holds, and a drop rate of 0 says nothing."
LEARNS_NOTHING = (
    "The load is even, but each token's probabilities are uniform: a balanced load says nothing about how well a router routes."
)

UNEVEN_ALL_ALONG = (
    "The load has been far from even all along: without a better past to compare with, counts cannot tell whether the router "
    "means it."
)
NOTHING_COUNTED = "No token was counted: the router did not run, or its counts do not reach the log."
BEYOND_ALL = "More is dropped than the counts hold: they are of other tokens, or what drops have left. No drop rate is derived."
EP_ODD = "The EP ranks do not divide the experts evenly: no load of EP ranks is derived."
EXPERTS_CHANGED = "The number of experts changed, and what was before is not compared: it is watched anew from step"
"""Followed by the step."""
SETTLED = "The router is frozen together with its block, or with most of the model: a choice; it is not told as ill."
_REMARKS = (CAPACITY_IMPLAUSIBLE, EP_ODD, EXPERTS_CHANGED, SETTLED)


def is_remark(doubt: str) -> bool:
    """Whether it leaves open how well the layer routes no more than it was: it is told, and no more."""
    return any(remark in doubt for remark in _REMARKS)


class Doubts:
    """Collects the doubts about one layer. Memory: eight rows."""

    def __init__(self) -> None:
        self._runs: dict[str, int] = {}
        self._newest: deque[tuple[float, float]] = deque(maxlen=2 * ROWS)
        self._counts: tuple[int, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """Those that stand now."""
        return tuple(text for text, rows in self._runs.items() if rows >= ROWS)

    def feed(self, row: RoutingRow, figures: LayerFigures) -> None:
        """Takes a row and its figures."""
        found = {
            text for text in (_about_drops(figures), self._about_sums(row, figures), _about_capacity(row, figures)) if text
        }
        found |= self._about_losses(figures)
        if row.ep_size and len(row.counts) % row.ep_size:
            found.add(EP_ODD)
        self._runs = {text: self._runs.get(text, 0) + 1 for text in found}
        self._counts = row.counts

    def feed_nothing(self) -> None:
        """A row came in which nothing was assigned."""
        self._runs = {NOTHING_COUNTED: self._runs.get(NOTHING_COUNTED, 0) + 1}

    def trusts_drops(self) -> bool:
        """Whether the drops of the newest row may be set against its counts."""
        return not self._runs.keys() & {COUNTED_TWICE, NEVER_CLEARED, AFTER_DROPS, SUM_IS_OFF, BEYOND_ALL}

    def _about_sums(self, row: RoutingRow, figures: LayerFigures) -> str | None:
        if figures.drop_ratio is not None and figures.drop_ratio > 1:
            return BEYOND_ALL
        if len(self._counts) == len(row.counts) and self._counts != row.counts and all(map(ge, row.counts, self._counts)):
            return NEVER_CLEARED
        if row.tokens is None or row.top_k is None or not 0 < row.tokens < inf or row.top_k < 1:
            return None
        ratio = wanted(row) / (row.tokens * row.top_k)
        if abs(ratio - 1) <= SUM_DIFFERS:
            return None
        if abs(ratio - TWICE) <= SUM_DIFFERS:
            return COUNTED_TWICE
        whole = row.tokens * row.top_k
        return (
            AFTER_DROPS if row.dropped and abs(figures.assignments + row.dropped - whole) <= SUM_DIFFERS * whole else SUM_IS_OFF
        )

    def _about_losses(self, figures: LayerFigures) -> set[str]:
        found = set()
        if figures.aux_loss is not None:
            self._newest.append((figures.aux_loss, figures.load_ratio_max))
            losses, loads = zip(*self._newest, strict=True)
            if len(losses) >= ROWS and len(set(losses)) == 1 and max(loads) > (1 + LOAD_CHANGES) * min(loads):
                found.add(AUX_CONSTANT)
        even = figures.mean_entropy_ratio > SURE_OF_NOTHING
        if even and figures.token_entropy_ratio is not None and figures.token_entropy_ratio > SURE_OF_NOTHING:
            found.add(LEARNS_NOTHING)
        return found


def _about_drops(figures: LayerFigures) -> str | None:
    told, predicted = figures.drop_ratio, figures.predicted_drop_ratio
    if told is None or predicted is None:
        return None
    return DROPS_DISAGREE if abs(told - predicted) > max(DROPS_DIFFER, DROPS_DIFFER_RELATIVE * max(told, predicted)) else None


def _about_capacity(row: RoutingRow, figures: LayerFigures) -> str | None:
    return CAPACITY_IMPLAUSIBLE if row.capacity is not None and row.capacity > CAPACITY_FACTOR_MAX * figures.fair else None
