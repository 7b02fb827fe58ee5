"""Each layer that routes, with its newest figures, their course and what is ill: what `pardbg moe` shows, worst first."""

from collections.abc import Callable, Sequence

from pardbg.watchdog.correlators.routing import find_ailing
from pardbg.watchdog.correlators.routing_ailment import STRETCH_ROWS, Stretch, by_load
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.model.names import ROUTING_KINDS, Kind
from pardbg.watchdog.model.routing import RoutingRow
from pardbg.watchdog.model.routing_health import ExpertLoad, LayerHealth, ShownFigures, ShownIllness, Trend, TrendFigure
from pardbg.watchdog.routing.figures import LayerFigures, measure
from pardbg.watchdog.routing.illness import Illness

WORST_EXPERTS = 8

_FIGURE_OF = {
    Kind.DEAD_EXPERTS: TrendFigure.DEAD,
    Kind.DROP_SPIKE: TrendFigure.DROPPED,
    Kind.EP_IMBALANCE: TrendFigure.EP_LOAD,
    Kind.ROUTER_NO_GRADIENT: TrendFigure.GRADIENT,
}
_READ: dict[TrendFigure, Callable[[LayerFigures], float | None]] = {
    TrendFigure.LOAD: lambda figures: figures.load_ratio_max,
    TrendFigure.DEAD: lambda figures: figures.dead_ratio,
    TrendFigure.DROPPED: lambda figures: figures.drop_ratio,
    TrendFigure.EP_LOAD: lambda figures: figures.ep_load_ratio_max,
    TrendFigure.GRADIENT: lambda figures: figures.router_grad_norm,
}


def find_layer_health(situation: Situation, points: int) -> tuple[LayerHealth, ...]:
    """All layers, the worst first.

    Args:
        situation: of a job in which routing was counted.
        points: into how many means the course of a figure is put.
    """
    rows: dict[int, list[RoutingRow]] = {}
    for row in situation.routing.rows:
        rows.setdefault(row.layer, []).append(row)
    ill: dict[int, list[Illness]] = {}
    for illness in sorted(find_ailing(situation), key=lambda found: (ROUTING_KINDS.index(found.kind), found.since_step)):
        ill.setdefault(illness.layer, []).append(illness)
    steps = (situation.routing.rows[0].step, situation.routing.rows[-1].step) if rows else (0, 0)
    found = (_describe(situation, one, ill.get(layer, []), steps, points) for layer, one in rows.items())
    return tuple(sorted((health for health in found if health is not None), key=_badness))


def _badness(health: LayerHealth) -> tuple[int, int, float, int]:
    first = health.illnesses[0] if health.illnesses else None
    order = ROUTING_KINDS.index(first.kind) if first is not None else len(ROUTING_KINDS)
    return order, first.since_step if first is not None else 0, -round(health.figures.load_ratio_max, 1), health.layer


def _describe(
    situation: Situation, rows: Sequence[RoutingRow], ill: Sequence[Illness], steps: tuple[int, int], points: int
) -> LayerHealth | None:
    newest = Stretch.of(rows[-STRETCH_ROWS:])
    if newest is None:
        return None
    total, figures = newest.total, newest.figures
    return LayerHealth(
        layer=total.layer,
        name=situation.routing.names.get(total.layer),
        steps=len(rows),
        first_step=rows[0].step,
        last_step=rows[-1].step,
        experts=figures.experts,
        top_k=total.top_k,
        ep_size=total.ep_size,
        figures=ShownFigures(
            load_ratio_max=figures.load_ratio_max,
            mean_entropy_ratio=figures.mean_entropy_ratio,
            dead_ratio=figures.dead_ratio,
            drop_ratio=figures.drop_ratio,
            ep_load_ratio_max=figures.ep_load_ratio_max,
            router_grad_norm=figures.router_grad_norm,
        ),
        illnesses=tuple(map(_name, ill)),
        worst_experts=tuple(
            ExpertLoad(expert=expert, share=total.counts[expert] / figures.assignments)
            for expert in by_load(total.counts)[:WORST_EXPERTS]
        ),
        trend=_trend(rows, ill[0].kind if ill else None, steps, points),
    )


def _name(illness: Illness) -> ShownIllness:
    return ShownIllness(
        kind=illness.kind,
        since_step=illness.since_step,
        until_step=illness.until_step,
        value=illness.value,
        usual=illness.usual,
        figure=illness.figure,
        experts=illness.experts,
        ep_ranks=illness.ep_ranks,
    )


def _trend(rows: Sequence[RoutingRow], kind: Kind | None, steps: tuple[int, int], points: int) -> Trend:
    """The course of the figure that is ill, else of the load; None where nothing was counted."""
    first, last = steps
    figure = TrendFigure.LOAD if kind is None else _FIGURE_OF.get(kind, TrendFigure.LOAD)
    found: list[list[float]] = [[] for _ in range(points)]
    for row in rows:
        figures = measure(row)
        value = None if figures is None else _READ[figure](figures)
        if value is not None:
            found[(row.step - first) * points // (last - first + 1)].append(value)
    means = tuple(sum(values) / len(values) if values else None for values in found)
    return Trend(figure=figure, first_step=first, last_step=last, means=means)
