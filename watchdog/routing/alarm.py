"""One alarm of one layer: raised when its sign has stood for some rows, dropped when it has been gone for some."""

from collections import deque
from dataclasses import dataclass, replace

from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.routing.illness import Illness

PAST_KEPT = 8
EXPERTS_NAMED = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Sign:
    """What one row shows of one illness. ``suspected`` dates the beginning; ``certain`` must stand to raise; ``well`` to drop.

    Attributes:
        severity: orders two signs of the same illness; the worst one is kept.
        since: when it began, where the detector knows it better than by ``suspected``.
    """

    step: int
    value: float
    severity: float
    suspected: bool
    certain: bool
    well: bool
    usual: float | None = None
    since: int | None = None
    experts: tuple[int, ...] = ()
    ep_ranks: tuple[int, ...] = ()


class Alarm:
    """Hysteresis over rows: ``rise`` certain rows on end raise it, ``fall`` well rows on end drop it."""

    def __init__(self, kind: Kind, layer: int, figure: str, *, rise: int, fall: int) -> None:
        self._kind, self._layer, self._figure = kind, layer, figure
        self._rise, self._fall = rise, fall
        self._certain = self._well = 0
        self._since: int | None = None
        self._well_from = 0
        self._worst = 0.0
        self.illness: Illness | None = None
        self.ended: deque[Illness] = deque(maxlen=PAST_KEPT)

    def update(self, sign: Sign) -> None:
        """Takes the sign of the next row."""
        if self.illness is None:
            self._watch(sign)
        else:
            self._follow(self.illness, sign)

    def _watch(self, sign: Sign) -> None:
        if not sign.suspected:
            self._since = None
        elif self._since is None:
            self._since = sign.step
        self._certain = self._certain + 1 if sign.certain else 0
        if self._certain >= self._rise:
            self.illness = Illness(
                kind=self._kind,
                layer=self._layer,
                since_step=next(step for step in (sign.since, self._since, sign.step) if step is not None),
                alarm_step=sign.step,
                value=sign.value,
                usual=sign.usual,
                figure=self._figure,
                experts=sign.experts[:EXPERTS_NAMED],
                ep_ranks=sign.ep_ranks,
            )
            self._worst, self._well = sign.severity, 0

    def _follow(self, illness: Illness, sign: Sign) -> None:
        if sign.severity > self._worst:
            self._worst = sign.severity
            self.illness = replace(
                illness, value=sign.value, experts=sign.experts[:EXPERTS_NAMED] or illness.experts, ep_ranks=sign.ep_ranks
            )
        if not sign.well:
            self._well = 0
            return
        if not self._well:
            self._well_from = sign.step
        self._well += 1
        if self._well >= self._fall:
            self.end(self._well_from)

    def end(self, step: int) -> None:
        """Ends it as of a step, if it lasts."""
        if self.illness is not None:
            self.ended.append(replace(self.illness, until_step=step))
        self.illness, self._since, self._certain, self._well = None, None, 0, 0
