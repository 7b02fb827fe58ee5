"""Where a figure that was there from the beginning has risen to a higher level: one split, clear on both sides."""

from collections.abc import Sequence
from itertools import accumulate
from statistics import fmean
from typing import NamedTuple

LEAST_ROWS = 24
"""On either side: a level is no burst."""
LEAST_RISE = 0.1
DEVIATIONS = 2.0
"""Of the rows around their own levels: what wanders by as much has no level that it rose from."""


class StepUp(NamedTuple):
    """The first value of the higher level by its place, and both levels (means)."""

    place: int
    before: float
    after: float


def find_step_up(values: Sequence[float]) -> StepUp | None:
    """The rise that explains most of how the values differ; None where there is none to speak of. Linear."""
    count, whole = len(values), sum(values)
    if count < 2 * LEAST_ROWS:
        return None
    sums = list(accumulate(values))
    places = range(LEAST_ROWS, count - LEAST_ROWS + 1)
    place = max(places, key=lambda at: (whole * at - sums[at - 1] * count) ** 2 / (at * (count - at)))
    before, after = fmean(values[:place]), fmean(values[place:])
    spread = (sum((one - before) ** 2 for one in values[:place]) + sum((one - after) ** 2 for one in values[place:])) / count
    is_clear = after - before >= max(LEAST_RISE, DEVIATIONS * spread**0.5)
    return StepUp(place, before, after) if is_clear else None
