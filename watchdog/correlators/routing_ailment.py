"""An illness of a layer with what was counted while it lasts and before, over stretches of steps: chance evens out in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pardbg.watchdog.model.routing import RoutingRow
from pardbg.watchdog.routing.figures import LayerFigures, measure
from pardbg.watchdog.routing.illness import Illness
from pardbg.watchdog.routing.span import sum_up

STRETCH_ROWS = 50


@dataclass(frozen=True)
class Stretch:
    """Some rows of a layer together."""

    rows: tuple[RoutingRow, ...]
    total: RoutingRow
    figures: LayerFigures

    @classmethod
    def of(cls, rows: Sequence[RoutingRow]) -> "Stretch | None":
        """None where they hold no assignment."""
        total = sum_up(rows) if rows else None
        figures = measure(total) if total is not None else None
        return cls(tuple(rows), total, figures) if total is not None and figures is not None else None

    @property
    def steps(self) -> str:
        """``steps 812-899``."""
        first, last = self.rows[0].step, self.rows[-1].step
        return f"step {last}" if first == last else f"steps {first}-{last}"


@dataclass(frozen=True)
class Ailment:
    """An illness with what was counted.

    Attributes:
        then: what was before.
        alike: findings of its kind, this one included.
        is_all_along: no row of the layer was counted before it.
        safe_step: a counted step before anything in the model fell ill; None where there is none.
    """

    illness: Illness
    now: tuple[RoutingRow, ...]
    stretch: Stretch | None
    then: Stretch | None
    alike: int
    name: str
    is_all_along: bool = False
    safe_step: int | None = None

    @classmethod
    def of(
        cls,
        illness: Illness,
        rows: Sequence[RoutingRow],
        alike: int,
        names: Mapping[int, str],
        safe_step: int | None = None,
    ) -> "Ailment":
        """Cuts the rows of the layer into during and before."""
        until = float("inf") if illness.until_step is None else illness.until_step
        now = tuple(row for row in rows if illness.since_step <= row.step < until)
        before = [row for row in rows if row.step < illness.since_step]
        return cls(
            illness=illness,
            now=now,
            stretch=Stretch.of(now[-STRETCH_ROWS:]),
            then=Stretch.of(before[-STRETCH_ROWS:]),
            alike=alike,
            name=names.get(illness.layer, ""),
            is_all_along=not before,
            safe_step=safe_step,
        )

    @property
    def ep_size(self) -> int | None:
        """Ranks that share the experts."""
        return self.stretch.total.ep_size if self.stretch else None

    @property
    def busiest(self) -> tuple[int, ...]:
        """The experts that take more than twice their share; where none does, those that the illness names."""
        if self.stretch is None:
            return self.illness.experts
        counts = self.stretch.total.counts
        taking = [expert for expert in by_load(counts) if counts[expert] > 2 * self.stretch.figures.fair]
        return tuple(taking) or self.illness.experts


def by_load(counts: Sequence[int]) -> list[int]:
    """The experts, the busiest first."""
    return sorted(range(len(counts)), key=lambda expert: (-counts[expert], expert))
