"""One layer through its steps: which illnesses it has now, and which it had.

Cost: below 0.3 ms a row with 256 experts (`pardbg.watchdog.bench.routing` measures it). Memory: about 200 KiB with 256
experts, whatever the number of steps.
"""

from math import inf

from pardbg.watchdog.model.routing import RoutingRow
from pardbg.watchdog.routing.collapse import CollapseWatch
from pardbg.watchdog.routing.dead_experts import DeadExpertsWatch
from pardbg.watchdog.routing.doubts import EXPERTS_CHANGED, UNEVEN_ALL_ALONG, Doubts
from pardbg.watchdog.routing.drop_spike import DropWatch
from pardbg.watchdog.routing.ep_imbalance import EpWatch
from pardbg.watchdog.routing.figures import LayerFigures, measure
from pardbg.watchdog.routing.floors import entropy_deficit
from pardbg.watchdog.routing.illness import Illness
from pardbg.watchdog.routing.load_window import LoadWindow
from pardbg.watchdog.routing.no_gradient import NoGradientWatch

WINDOW_ROWS = 16


class LayerWatch:
    """Fed with the rows of one layer, oldest first.

    A step that was already seen is left out; one that lies before the newest means that training went back to a
    checkpoint, and a warm-up may follow. Another number of experts is another layer: all begins anew.

    Attributes:
        figures: those of the newest row; None where it had no load.
    """

    def __init__(self, layer: int) -> None:
        self.layer = layer
        self.figures: LayerFigures | None = None
        self._step: int | None = None
        self._changed_at: int | None = None
        self._begin()

    def _begin(self) -> None:
        self._doubts = Doubts()
        self._window = LoadWindow(WINDOW_ROWS)
        self._collapse, self._drops = CollapseWatch(self.layer), DropWatch(self.layer)
        self._dead, self._ep = DeadExpertsWatch(self.layer), EpWatch(self.layer)
        self._gradient = NoGradientWatch(self.layer)
        self._alarms = tuple(watch.alarm for watch in (self._collapse, self._drops, self._dead, self._ep, self._gradient))

    @property
    def illnesses(self) -> tuple[Illness, ...]:
        """Those that last, collapse first: it explains the others (`explaining.explains`)."""
        return tuple(alarm.illness for alarm in self._alarms if alarm.illness is not None)

    @property
    def past(self) -> tuple[Illness, ...]:
        """Those that ended, the newest eight of each kind, by the step at which they began."""
        return tuple(sorted((ended for alarm in self._alarms for ended in alarm.ended), key=lambda illness: illness.since_step))

    @property
    def doubts(self) -> tuple[str, ...]:
        """What does not add up in what was counted."""
        uneven = (UNEVEN_ALL_ALONG,) if self._collapse.uneven_all_along else ()
        changed = (f"{EXPERTS_CHANGED} {self._changed_at}.",) if self._changed_at is not None else ()
        return (*self._doubts.texts, *uneven, *changed)

    def feed(self, row: RoutingRow, others_gradient: float | None = None) -> None:
        """Takes the next row; ``others_gradient`` is the median gradient norm of the other routers in the same step."""
        if row.step == self._step:
            return
        if self._step is not None and row.step < self._step:
            self._restart()
        self._step = row.step
        self.figures = measure(row)
        if self.figures is None:
            self._doubts.feed_nothing()
            return
        if self._window.sums and len(self._window.sums) != self.figures.experts:
            self._changed_at = row.step
            self._begin()
        self._feed(row, self.figures, others_gradient)

    def _restart(self) -> None:
        self._window = LoadWindow(WINDOW_ROWS)
        for watch in (self._collapse, self._drops, self._dead, self._ep):
            watch.restart()

    def _feed(self, row: RoutingRow, figures: LayerFigures, others_gradient: float | None) -> None:
        self._doubts.feed(row, figures)
        excess = max(0.0, figures.deficit - entropy_deficit(figures.fair, figures.experts))
        self._window.push(row.counts, excess)
        self._collapse.feed(row.step, self._window, excess, _top_k(row, figures))
        self._dead.feed(row.step, row.counts, figures.fair)
        drops = _drops(row, figures)
        if drops is not None and self._doubts.trusts_drops():
            self._drops.feed(row.step, drops, figures.fair, learn=not self._collapse.active)
        if figures.ep_loads is not None:
            self._ep.feed(row.step, self._window, figures.ep_loads, collapsed=self._collapse.suspected)
        if figures.router_grad_norm is not None:
            self._gradient.feed(row.step, figures.router_grad_norm, others_gradient)


def _top_k(row: RoutingRow, figures: LayerFigures) -> int:
    """As told; else by tokens; else 1, which makes a degree smaller than it is: better late than wrong."""
    if row.top_k is not None and row.top_k > 0:
        return row.top_k
    return max(1, round(figures.assignments / row.tokens)) if row.tokens is not None and 1 <= row.tokens < inf else 1


def _drops(row: RoutingRow, figures: LayerFigures) -> float | None:
    """By the mask, where 0 is measured, too; else as predicted, if there is a capacity or a drop; None if it is no share."""
    told, predicted = figures.drop_ratio, figures.predicted_drop_ratio
    ratio = told if told is not None else predicted if row.capacity is not None or predicted else None
    return ratio if ratio is not None and 0 <= ratio <= 1 else None
