"""What to try against each illness of routing."""

from collections.abc import Callable

from pardbg.watchdog.correlators.routing_ailment import Ailment
from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.routing.model_watch import TOLD_FROZEN

MUCH = 1.5
"""An expert's load over the mean from which it alone makes its rank hot."""

SAME_LOAD = 1.2
MOST_FACTOR = 4.0
"""A capacity beyond so many times the mean load is no advice: memory and time of every expert grow with it."""


def advise(ailment: Ailment) -> tuple[str, ...]:
    """In the order in which to try it."""
    return _ADVICE[ailment.illness.kind](ailment)


def _collapse(ailment: Ailment) -> tuple[str, ...]:
    return (
        *_go_back(ailment),
        "Raise the coefficient of the balancing loss, or the update rate of the expert bias; a z-loss keeps the logits small.",
        "See that the balancing loss is computed layer by layer and reaches the router: pooled, it can look perfect.",
    )


def _go_back(ailment: Ailment) -> tuple[str, ...]:
    """Only where a step before everything that is ill was counted; the beginning itself is told a little late."""
    if ailment.safe_step is None:
        return ("No step that was counted lies well before it: see earlier counts, or the run's first steps.",)
    return (f"Resume from a checkpoint before about step {ailment.safe_step}: a router seldom recovers by itself.",)


def _dead(ailment: Ailment) -> tuple[str, ...]:
    causes = "a mask, a bias that ran away, experts that were not loaded"
    where = (
        f"It was so in the first step that was counted: look for {causes}."
        if ailment.is_all_along
        else f"See what changed around step {ailment.illness.since_step}: {causes}."
    )
    return (
        where,
        "Raise the coefficient of the balancing loss or the update rate of the expert bias until the experts are chosen again.",
    )


def _hot(ailment: Ailment) -> tuple[str, ...]:
    stretch = ailment.stretch
    is_one = stretch is not None and stretch.figures.load_ratio_max >= MUCH * (stretch.figures.ep_load_ratio_max or 1.0)
    where = (
        "Give the busiest experts replicas, or balance harder: one expert alone makes the rank hot."
        if is_one
        else "Place the experts anew, so that busy ones do not share an EP rank; or balance by rank (a device-level loss)."
    )
    return (where, "Until then the hot rank sets the pace: expect its memory and the all-to-all time to grow first.")


def _drops(ailment: Ailment) -> tuple[str, ...]:
    stretch, then, ill = ailment.stretch, ailment.then, ailment.illness
    advice = []
    if stretch is not None and then is not None and _is_cut(then.total.capacity, stretch.total.capacity):
        cut = f"from {then.total.capacity:g} to {stretch.total.capacity:g}"
        is_same = stretch.figures.load_ratio_max <= SAME_LOAD * then.figures.load_ratio_max
        load = "and the load did not change" if is_same else "and the load became less even, too"
        advice.append(f"Restore the capacity: it fell {cut} at step {ill.since_step}, {load}.")
    elif stretch is not None:
        need = stretch.figures.load_ratio_max
        advice.append(
            f"A capacity factor of {need:.2g} drops next to nothing of this load; balance it if that is too much."
            if need <= MOST_FACTOR
            else f"The load is concentrated ({need:.1f} times the mean on one expert): no capacity helps, balance it first."
        )
    predicted = stretch.figures.predicted_drop_ratio if stretch is not None else None
    dropped = stretch.figures.drop_ratio if stretch is not None else None
    if predicted is not None and dropped is not None and dropped > 2 * predicted:
        advice.append("The mask drops more than the capacity explains: see that it ranks by probabilities, not by raw logits.")
    if ill.until_step is not None and ailment.safe_step is not None:
        back = f"decide whether to go back to about step {ailment.safe_step}"
        advice.append(f"What these tokens would have taught is lost: {back}.")
    return tuple(advice)


def _is_cut(before: float | None, now: float | None) -> bool:
    return before is not None and now is not None and now < before


def _numb(ailment: Ailment) -> tuple[str, ...]:
    if ailment.illness.figure == TOLD_FROZEN:
        return (
            "Look for what sets requires_grad to False on this router alone.",
            "If that is meant, freeze its whole block with it, or all routers: then it is not told as ill.",
        )
    return (
        "See whether the router is frozen, detached, or weighs every choice 1 (top-1 with normalised weights has no gradient).",
        "Compare the loss with that of a dense model: without a router that learns, experts are as good as random.",
    )


_ADVICE: dict[Kind, Callable[[Ailment], tuple[str, ...]]] = {
    Kind.ROUTER_COLLAPSE: _collapse,
    Kind.DEAD_EXPERTS: _dead,
    Kind.EP_IMBALANCE: _hot,
    Kind.DROP_SPIKE: _drops,
    Kind.ROUTER_NO_GRADIENT: _numb,
}
