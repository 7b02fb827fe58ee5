"""A router that takes no gradient: cut off from the loss, or frozen by mistake, it stays as it was when it began."""

from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.routing.alarm import Alarm, Sign
from pardbg.watchdog.routing.baseline import Baseline

NOTHING = 1e-7
"""A norm below this is rounding. Trained routers are at 1e-4 to 1."""
OF_OTHERS = 1e-4
"""Of the median of the other layers in the same step, or of the layer's own past."""
CERTAIN_ROWS, ALONE_ROWS, WELL_ROWS = 8, 20, 4
"""Skipped steps (an overflow of the loss scale) have norm 0 too, but not eight on end."""


class NoGradientWatch:
    """Raises `Kind.ROUTER_NO_GRADIENT` of one layer."""

    def __init__(self, layer: int) -> None:
        self.alarm = Alarm(Kind.ROUTER_NO_GRADIENT, layer, "norm of the router's gradient", rise=CERTAIN_ROWS, fall=WELL_ROWS)
        self._baseline = Baseline(lag=CERTAIN_ROWS, least=8)
        self._still = 0

    def feed(self, step: int, norm: float, others: float | None) -> None:
        """Takes the norm of a row, and the median norm of the other layers in this step where there are any."""
        nothing = norm <= NOTHING
        self._still = self._still + 1 if nothing else 0
        self.alarm.update(
            Sign(
                step=step,
                value=norm,
                severity=-norm,
                suspected=nothing,
                certain=nothing and self._stands_out(norm, others),
                well=not nothing,
                usual=self._baseline.median,
            )
        )
        if nothing:
            self._baseline.hold()
        else:
            self._baseline.learn(norm)

    def _stands_out(self, norm: float, others: float | None) -> bool:
        """Against the layer's own past, else against the other layers; with neither to compare, only for longer."""
        measures = [measure for measure in (self._baseline.median, others) if measure is not None]
        if measures:
            return norm <= OF_OTHERS * max(measures)
        return self._still >= ALONE_ROWS
