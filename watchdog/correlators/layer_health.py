"""Each layer that routes, with its newest figures, their course and what is ill: what `pardbg moe` shows, worst first."""

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from pardbg.watchdog.correlators.routing import by_gravity, find_ailing, rows_of_layers
from pardbg.watchdog.correlators.routing_ailment import STRETCH_ROWS, Stretch, by_load
from pardbg.watchdog.correlators.routing_notes import find_lost
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.model.routing import RoutingRow, RoutingSeries
from pardbg.watchdog.model.routing_health import ExpertLoad, LayerHealth, ShownFigures, ShownIllness, Trend, TrendFigure
from pardbg.watchdog.routing.doubts import is_remark
from pardbg.watchdog.routing.figures import LayerFigures, measure
from pardbg.watchdog.routing.illness import Illness
from pardbg.watchdog.store.view import EvidenceView

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

_BADNESS: dict[Kind, Callable[[ShownFigures], float | None]] = {
    Kind.ROUTER_COLLAPSE: lambda figures: -figures.mean_entropy_ratio,
    Kind.DEAD_EXPERTS: lambda figures: figures.dead_ratio,
    Kind.DROP_SPIKE: lambda figures: figures.drop_ratio,
    Kind.EP_IMBALANCE: lambda figures: figures.ep_load_ratio_max,
}


def find_layer_health(situation: Situation, points: int) -> tuple[LayerHealth, ...]:
    """All layers, the worst first.

    Args:
        situation: of a job in which routing was counted.
        points: into how many means the course of a figure is put.
    """
    rows = rows_of_layers(situation)
    ill: dict[int, list[Illness]] = {}
    ailing = sorted(find_ailing(situation), key=by_gravity(situation))
    for illness in ailing:
        ill.setdefault(illness.layer, []).append(illness)
    steps = (situation.routing.rows[0].step, situation.routing.rows[-1].step) if rows else (0, 0)
    found = (_describe(situation, one, ill.get(layer, []), steps, points) for layer, one in rows.items())
    order = list(dict.fromkeys(illness.layer for illness in ailing))
    known = [health for health in found if health is not None]
    return tuple(sorted((_compare(health, known) for health in known), key=lambda health: _badness(health, order)))


def layers_in(evidence: Iterable[Evidence], points: int) -> tuple[LayerHealth, ...]:
    """The same of evidence that is about more than routing; none where nothing was counted of it."""
    counted = [item for item in evidence if isinstance(item.observation, RoutingSeries)]
    return find_layer_health(Situation.of(EvidenceView.of(counted)), points) if counted else ()


def _badness(health: LayerHealth, order: Sequence[int]) -> tuple[int, bool, float, int]:
    place = order.index(health.layer) if health.layer in order else len(order)
    return place, not health.doubts, -round(health.figures.load_ratio_max, 1), health.layer


def _compare(health: LayerHealth, every: Sequence[LayerHealth]) -> LayerHealth:
    """A layer in which nothing is told as ill is not called well where its figure is as bad as one that is called ill."""
    if health.illnesses:
        return health
    for other in every:
        for illness in other.illnesses:
            badness = _BADNESS.get(illness.kind)
            own, theirs = (badness(one.figures) if badness else None for one in (health, other))
            if illness.until_step is None and own is not None and theirs is not None and own >= theirs:
                doubt = f"its figures are those of layer {other.layer}, which has {illness.kind.value}"
                return replace(health, doubts=(*health.doubts, doubt))
    return health


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
        doubts=(
            *find_lost(situation),
            *(doubt for doubt in situation.routing_watch.layers[total.layer].doubts if not is_remark(doubt)),
        ),
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
        alarm_step=max(illness.alarm_step, illness.since_step),
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
