"""A spike of the drop rate: a layer suddenly drops far more assignments than it used to."""

from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.routing import floors
from pardbg.watchdog.routing.alarm import Alarm, Sign
from pardbg.watchdog.routing.baseline import Baseline
from pardbg.watchdog.routing.trend import Trend

LEAST = 0.05
"""Published runs drop below 2 % at a capacity factor of 1.25 or more; below this no change of it matters."""
CERTAIN_ROWS, WELL_ROWS = 3, 8
"""Three rows on end: a skewed batch is one or two."""
TIMES_CHANCE = 3
"""Tokens of a step are alike, so that loads spread about three times as far as by chance, and drop as much more."""
HIGH, HIGH_ROWS = 0.25, 20
"""With no better past to compare with: what drops this much from the first row on, and does not improve, nobody has chosen."""


class DropWatch:
    """Raises `Kind.DROP_SPIKE` of one layer."""

    def __init__(self, layer: int) -> None:
        self.alarm = Alarm(Kind.DROP_SPIKE, layer, "drop ratio", rise=CERTAIN_ROWS, fall=WELL_ROWS)
        self._baseline = Baseline(lag=CERTAIN_ROWS, least=8)
        self._trend = Trend()
        self._rows = self._high_rows = 0
        self._been_well = False
        self._level = HIGH

    def restart(self) -> None:
        """What follows is a new beginning of the same layer."""
        self._rows = self._high_rows = 0
        self._been_well = False
        self._trend = Trend()

    def feed(self, step: int, ratio: float, fair: float, *, learn: bool) -> None:
        """Takes the drop ratio of a row; ``learn`` False while another illness distorts what is usual."""
        self._rows += 1
        chance = TIMES_CHANCE * floors.drop_ratio(fair)
        self._high_rows += ratio >= HIGH + chance
        self._trend.push(ratio)
        always = self._high_rows == self._rows
        if self.alarm.illness is None:
            self._level = HIGH + chance if always else max(LEAST + chance, self._baseline.limit)
        self._been_well |= ratio < LEAST + chance
        suspected = ratio >= self._level
        self.alarm.update(
            Sign(
                step=step,
                value=ratio,
                severity=ratio,
                usual=None if always else self._baseline.median,
                suspected=suspected,
                certain=suspected and self._lasts(),
                well=ratio < self._level / 2,
            )
        )
        if self.alarm.illness is not None or not learn:
            self._baseline.hold()
        else:
            self._baseline.learn(ratio)

    def _lasts(self) -> bool:
        """Whether it is more than a beginning: a router out of balance drops much, and gets better."""
        return self._been_well or (self._rows > HIGH_ROWS - CERTAIN_ROWS and not self._trend.improves(HIGH_ROWS))
