"""Rows as literal as they can be: what a test does not say is as in a healthy layer."""

from collections.abc import Iterator

from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.model.routing import RoutingRow
from pardbg.watchdog.routing.illness import Illness
from pardbg.watchdog.routing.layer_watch import LayerWatch

EVEN = (512,) * 8


def row(step: int, *, counts: tuple[int, ...] = EVEN, layer: int = 0, **known: float) -> RoutingRow:
    """A row of 8 experts, 4,096 assignments."""
    return RoutingRow(step=step, layer=layer, counts=counts, **known)  # type: ignore[arg-type]


def with_drops(ratios: list[float]) -> Iterator[RoutingRow]:
    """Rows of an even load, each with its drop ratio."""
    for step, ratio in enumerate(ratios):
        yield row(step, dropped=ratio * 4096, capacity=640)


def fed(rows: Iterator[RoutingRow] | list[RoutingRow]) -> LayerWatch:
    """A watch that has seen them all."""
    watch = LayerWatch(0)
    for one in rows:
        watch.feed(one)
    return watch


def found(watch: LayerWatch) -> dict[Kind, Illness]:
    """What it has told at any time, by kind."""
    return {illness.kind: illness for illness in (*watch.past, *watch.illnesses)}
