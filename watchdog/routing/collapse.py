"""Router collapse: the tokens of a layer go to ever fewer experts, and stay there.

Told by the *degree*: entropy deficit of the load of 16 rows together, over the noise floor, over ln(E / k). 0: uniform;
1: all tokens take one and the same set of k experts. Taken over rows together, because a skewed batch, a hot spot that
wanders and a balancing bias that swings all average out in it, and a collapse does not (persistence 0.95 against 0.1).

What else looks like it, and why it does not raise the alarm: a warm-up, or a restart without the balancing state, improves;
other data, or padding, moves the load once to a level that stays (only growth, or a severe level, counts); a router that is
uneven by nature has been so all along (its own past is the measure).
"""

from heapq import nlargest
from math import log

from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.routing import floors
from pardbg.watchdog.routing.alarm import EXPERTS_NAMED, Alarm, Sign
from pardbg.watchdog.routing.baseline import Baseline
from pardbg.watchdog.routing.load_window import LoadWindow
from pardbg.watchdog.routing.trend import Trend

GROWING, SEVERE, ALWAYS, TOTAL = 0.10, 0.35, 0.50, 0.70
"""Degrees. With E 64, k 8 the effective experts are 52, 31, 23 and 15. From GROWING on a degree must still grow; from SEVERE
on it must be out of line with the past; from ALWAYS on (for 48 rows in all; TOTAL: 20) no past is needed."""
TIMES_CHANCE = 15
"""Times the deficit of one row by chance, the least at which growth counts: the tokens of a step are alike, which spreads
loads three times as far and the deficit, a variance, nine times; and they wander up by as much again."""
SEVERE_TO_GROWING = 1.5
SUSPICIOUS = 3
"""Times the usual degree: from here on an alarm that follows is dated."""
BEST_ROWS = 128
"""A past must be as long to be remembered as the best one, against which a collapse over thousands of rows is held."""
UNEVEN = 0.2
"""Usual degree from which on a layer is worth a remark."""
PERSISTENT = 0.6
CERTAIN_ROWS, WELL_ROWS = 5, 16
WELL_PART = 0.6
"""Of the degree that raised the alarm."""
LEAST_ROWS, ALWAYS_ROWS = 21 - CERTAIN_ROWS, 32
NOISE_DEVIATIONS = 6


class CollapseWatch:
    """Raises `Kind.ROUTER_COLLAPSE` of one layer."""

    def __init__(self, layer: int) -> None:
        self.alarm = Alarm(Kind.ROUTER_COLLAPSE, layer, "entropy of the load / ln E", rise=CERTAIN_ROWS, fall=WELL_ROWS)
        self._baseline, self._trend = Baseline(), Trend()
        self._suspected = False
        self._best_limit = float("inf")
        self._always_rows, self._growing = 0, GROWING
        self._well_degree = 0.0
        self._first_step: int | None = None
        self._doubtful_from_first = True

    @property
    def active(self) -> bool:
        """Whether the layer is in collapse now."""
        return self.alarm.illness is not None

    @property
    def suspected(self) -> bool:
        """Whether it is, or looks as if it were about to be."""
        return self.active or self._suspected

    @property
    def uneven_all_along(self) -> bool:
        """Whether the load is far from even, and there is no better past that would make it an illness."""
        usual = self._baseline.median
        return not self.active and usual is not None and usual >= max(UNEVEN, self._growing)

    def restart(self) -> None:
        """Forgets the trend: what follows is a new beginning of the same layer."""
        self._trend = Trend()

    def feed(self, step: int, window: LoadWindow, step_excess: float, top_k: int) -> None:
        """Takes a row that ``window`` already holds; ``step_excess`` is its own deficit over noise, nats."""
        experts = len(window.sums)
        if top_k >= experts:
            return
        if self._first_step is None:
            self._first_step = step
        span = log(experts / top_k)
        self._trend.push(step_excess / span)
        if not window.full:
            return
        self._growing = max(GROWING, TIMES_CHANCE * window.row_deficit_by_chance() / span)
        excess = window.excess()
        degree = excess / span
        self._suspected = degree >= GROWING and degree > self._baseline.limit
        self._always_rows = self._always_rows + 1 if degree >= ALWAYS else 0
        certain = self._certain(window, excess, degree)
        if not self.active:
            self._well_degree = WELL_PART * degree
        self.alarm.update(self._sign(step, window, excess, degree, certain=certain))
        if self.active:
            self._baseline.hold()
        else:
            self._baseline.learn(degree)
            if self._baseline.rows >= BEST_ROWS:
                self._best_limit = min(self._best_limit, self._baseline.limit)

    def _certain(self, window: LoadWindow, excess: float, degree: float) -> bool:
        if degree < GROWING or not self._beyond_chance(window, excess) or window.persistence(excess) < PERSISTENT:
            return False
        if degree > max(self._growing, self._baseline.limit) and self._trend.grows():
            return True
        if degree >= max(SEVERE, SEVERE_TO_GROWING * self._growing) and degree > min(self._best_limit, self._baseline.limit):
            return not self._trend.improves(LEAST_ROWS)
        lasting = self._always_rows >= ALWAYS_ROWS or (degree >= TOTAL and len(self._trend) >= LEAST_ROWS)
        return lasting and not self._trend.improves()

    def _beyond_chance(self, window: LoadWindow, excess: float) -> bool:
        experts = len(window.sums)
        return excess > NOISE_DEVIATIONS * floors.deficit_deviation(sum(window.sums) / experts, experts)

    def _sign(self, step: int, window: LoadWindow, excess: float, degree: float, *, certain: bool) -> Sign:
        usual = self._baseline.median
        experts = len(window.sums)
        whole = log(experts)
        told = self.active or certain
        suspected = certain or degree > max(GROWING / 2, SUSPICIOUS * (usual or 0.0))
        self._doubtful_from_first &= suspected
        return Sign(
            step=step,
            value=1 - excess / whole,
            severity=degree,
            suspected=suspected,
            since=self._first_step if self._doubtful_from_first else None,
            certain=certain,
            well=degree < self._well_degree,
            usual=None if usual is None else 1 - usual * excess / degree / whole if degree else 1.0,
            experts=tuple(nlargest(EXPERTS_NAMED, range(experts), key=window.sums.__getitem__)) if told else (),
        )
