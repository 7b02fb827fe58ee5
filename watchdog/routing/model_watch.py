"""All layers of a model through their steps. Cost and memory: those of `LayerWatch`, times the number of layers."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from statistics import median

from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.model.routing import RoutingRow
from pardbg.watchdog.routing.doubts import SETTLED
from pardbg.watchdog.routing.explaining import by_weight
from pardbg.watchdog.routing.illness import Illness
from pardbg.watchdog.routing.layer_watch import LayerWatch

FROZEN_ROWS = 10
ALL_FROZEN = "All routers are told to take no gradient: a choice, or training forgot them; none is told as ill."
TOLD_FROZEN = "norm of the gradient of a router that is told to take none"
NONE_LEARNS = "No router has had a gradient in any step: frozen by choice, or cut off from the loss; none is told as ill."


class RoutingWatch:
    """Fed with the rows of all layers, steps in order.

    Attributes:
        layers: the watch of each layer by its number.
        names: module name of each layer, where known.
    """

    def __init__(self) -> None:
        self.layers: dict[int, LayerWatch] = {}
        self.names: dict[int, str] = {}
        self._frozen: frozenset[int] = frozenset()
        self._settled: frozenset[int] = frozenset()
        self._still_since: dict[int, int] = {}
        self._still_rows: dict[int, int] = {}
        self._learns = False
        self._gradients_seen = 0

    def feed(
        self,
        rows: Iterable[RoutingRow],
        names: Mapping[int, str] | None = None,
        frozen: Iterable[int] | None = None,
        settled: Iterable[int] | None = None,
    ) -> None:
        """Takes newer rows, oldest step first.

        Args:
            rows: of any layers.
            names: module names of layers; added to those known.
            frozen: layers whose routers are told to take no gradient; None leaves it as it was told last.
            settled: those of them that are frozen by choice; likewise.
        """
        self.names.update(names or {})
        self._frozen = self._frozen if frozen is None else frozenset(frozen)
        self._settled = self._settled if settled is None else frozenset(settled)
        for _, step_rows in groupby(rows, key=attrgetter("step")):
            self._feed_step(list(step_rows))

    def _feed_step(self, rows: list[RoutingRow]) -> None:
        norms = {row.layer: row.router_grad_norm for row in rows if row.router_grad_norm is not None}
        self._gradients_seen += bool(norms)
        self._learns |= any(norms.values())
        for row in rows:
            others = [norm for layer, norm in norms.items() if layer != row.layer and layer not in self._frozen]
            self._note_still(row)
            self.layers.setdefault(row.layer, LayerWatch(row.layer)).feed(row, median(others) if others else None)

    def _note_still(self, row: RoutingRow) -> None:
        """Since when, and in how many rows, its router has not been seen to learn."""
        if row.router_grad_norm:
            self._still_since.pop(row.layer, None)
            self._still_rows[row.layer] = 0
        else:
            self._still_since.setdefault(row.layer, row.step)
            self._still_rows[row.layer] = self._still_rows.get(row.layer, 0) + 1

    @property
    def illnesses(self) -> tuple[Illness, ...]:
        """What is ill now: causes first, and the worst kind (`explaining.by_weight`)."""
        return by_weight((*self._of_layers(), *self._frozen_ones()))

    @property
    def past(self) -> tuple[Illness, ...]:
        """What was ill and ended, by its beginning."""
        ended = (illness for layer in self.layers.values() for illness in layer.past)
        return tuple(sorted(ended, key=lambda illness: (illness.since_step, illness.layer)))

    @property
    def doubts(self) -> tuple[str, ...]:
        """What does not add up, with the layers it is about."""
        about: dict[str, list[int]] = {}
        for number, layer in sorted(self.layers.items()):
            for doubt in layer.doubts:
                about.setdefault(doubt, []).append(number)
        if (settled := sorted(self._settled & self.layers.keys())) and not self._all_frozen():
            about[SETTLED] = settled
        return (*(f"{_layers(numbers)}: {doubt}" for doubt, numbers in about.items()), *self._about_all())

    def _of_layers(self) -> Iterator[Illness]:
        quiet = self._none_learns()
        for layer in self.layers.values():
            for illness in layer.illnesses:
                told_frozen = layer.layer in self._frozen and illness.kind is Kind.ROUTER_NO_GRADIENT
                if not told_frozen and not (quiet and illness.kind is Kind.ROUTER_NO_GRADIENT):
                    yield illness

    def _frozen_ones(self) -> Iterator[Illness]:
        """Routers told frozen, where what is around them trains: hardly a choice."""
        if self._all_frozen():
            return
        for layer in sorted((self._frozen - self._settled) & self.layers.keys()):
            if self._still_rows.get(layer, 0) >= FROZEN_ROWS:
                since = self._still_since[layer]
                yield Illness(
                    kind=Kind.ROUTER_NO_GRADIENT,
                    layer=layer,
                    since_step=since,
                    alarm_step=since,
                    value=0.0,
                    figure=TOLD_FROZEN,
                )

    def _all_frozen(self) -> bool:
        return bool(self.layers) and self._frozen >= self.layers.keys()

    def _none_learns(self) -> bool:
        return self._gradients_seen > 0 and not self._learns

    def _about_all(self) -> tuple[str, ...]:
        if self._all_frozen():
            return (ALL_FROZEN,)
        return (NONE_LEARNS,) if self._none_learns() and self._gradients_seen >= FROZEN_ROWS else ()


def _layers(numbers: list[int]) -> str:
    return f"{'layer' if len(numbers) == 1 else 'layers'} {', '.join(map(str, numbers))}"
