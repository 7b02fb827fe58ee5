"""Illnesses of routing in words: what a layer does, since which step, what it did before.

Figures are told of stretches of steps, not of one: the last ones that the illness covers, and the last ones before it.
"""

from collections.abc import Callable, Iterator

from pardbg.watchdog.correlators.routing_ailment import Ailment, Stretch
from pardbg.watchdog.model.names import CollectorName, Kind
from pardbg.watchdog.model.ranks import fold_briefly
from pardbg.watchdog.model.report import EvidenceLine
from pardbg.watchdog.model.routing import RoutingSeries
from pardbg.watchdog.routing.model_watch import TOLD_FROZEN
from pardbg.watchdog.store.view import EvidenceView

MOST_EXPERTS_NAMED = 8
MOST_RANKS_TOLD = 2
LEAST_SHARE = 0.0005  # below it a percentage says nothing


def claim(ailment: Ailment) -> str:
    """One sentence: which layer does what, since when or until when, and in how many more layers."""
    illness = ailment.illness
    told = _CLAIMS[illness.kind](ailment)
    when = f"all along, since step {illness.since_step}" if ailment.is_all_along else f"since step {illness.since_step}"
    if illness.until_step is not None:
        when = f"from step {illness.since_step} until step {illness.until_step}, when it ended"
    more = f"; {ailment.alike - 1} more layer{'s do' if ailment.alike > 2 else ' does'} the like" if ailment.alike > 1 else ""
    return f"layer {illness.layer} {told} {when}{_before(ailment)}{more}"


def share(value: float) -> str:
    """``71%``, ``4.2%``, ``0``."""
    if value < LEAST_SHARE:
        return "0" if value <= 0 else "less than 0.1%"
    return f"{value:.0%}" if value >= 0.1 or round(value, 3) == round(value, 2) else f"{value:.1%}"


def why_hot(ailment: Ailment, ep_rank: int) -> str:
    """What points at an EP rank."""
    loads = ailment.stretch.figures.ep_loads if ailment.stretch else None
    if not loads or ep_rank >= len(loads):
        return f"EP rank {ep_rank} has more than its share of the tokens"
    taken, fair = share(loads[ep_rank]), share(1 / len(loads))
    return f"its experts take {taken} of the tokens of layer {ailment.illness.layer}; {fair} is fair"


def lines(ailment: Ailment, view: EvidenceView) -> Iterator[EvidenceLine]:
    """What was counted while it lasts, which experts that concerns, and what was counted before."""
    stretch, then = ailment.stretch, ailment.then
    where = f"layer {ailment.illness.layer}{f' ({ailment.name})' if ailment.name else ''}"
    texts = []
    if stretch is not None:
        texts.append(f"{where}, {stretch.steps}: {_tell(stretch)}")
        named = ailment.busiest[:MOST_EXPERTS_NAMED]
        counts, total = stretch.total.counts, stretch.figures.assignments
        if ailment.illness.kind is Kind.EP_IMBALANCE:
            texts += [f"{where}, {stretch.steps}: {told}" for told in _tell_hot_experts(ailment, stretch)]
        if ailment.illness.kind is Kind.DEAD_EXPERTS:
            texts.append(f"{where}, {stretch.steps}: {_tell_dead(ailment, stretch)}")
        if ailment.illness.kind in {Kind.ROUTER_COLLAPSE, Kind.DROP_SPIKE} and named:
            taken = ", ".join(f"{expert} ({share(counts[expert] / total)})" for expert in named)
            texts.append(f"{where}, {stretch.steps}: the busiest experts take: {taken}")
    if then is not None:
        texts.append(f"{where} before, {then.steps}: {_tell(then)}")
    at, origin = _origin(view)
    for text in texts:
        yield EvidenceLine(source=CollectorName.ROUTING, rank=None, host=None, at=at, text=text, origin=origin)


def _collapse(ailment: Ailment) -> str:
    if ailment.stretch is None:
        return "sends nearly all tokens to few experts"
    counts, figures, taking = ailment.stretch.total.counts, ailment.stretch.figures, ailment.busiest
    taken = sum(counts[expert] for expert in taking) / figures.assignments
    return f"sends {share(taken)} of its tokens to {len(taking)} of {figures.experts} experts"


def _dead(ailment: Ailment) -> str:
    if ailment.stretch is None:
        return "has experts without a token"
    counts = ailment.stretch.total.counts
    dead = [expert for expert, count in enumerate(counts) if count == 0] or list(ailment.illness.experts)
    named = f"{'expert' if len(dead) == 1 else 'experts'} {fold_briefly(dead, 40)}"
    return f"gives {len(dead)} of its {len(counts)} experts no token ({named})"


def _hot(ailment: Ailment) -> str:
    loads = ailment.stretch.figures.ep_loads if ailment.stretch else None
    ranks = ailment.illness.ep_ranks
    named = f"EP {'rank' if len(ranks) == 1 else 'ranks'} {fold_briefly(ranks, 40)}" if ranks else "one EP rank"
    if not loads:
        return f"loads {named} far more than the others"
    hottest = max(ranks, key=lambda rank: loads[rank]) if ranks else loads.index(max(loads))
    return f"loads {named} with {loads[hottest] * len(loads):.1f} times the mean of its {len(loads)} EP ranks"


def _drops(ailment: Ailment) -> str:
    dropped = ailment.stretch.figures.drop_ratio if ailment.stretch else None
    verb = "drops" if ailment.illness.until_step is None else "dropped"
    return f"{verb} {share(ailment.illness.value if dropped is None else dropped)} of what its tokens were assigned"


def _numb(ailment: Ailment) -> str:
    if ailment.illness.figure == TOLD_FROZEN:
        return "has a router that is told to take no gradient (requires_grad is False) while its block trains"
    norm = ailment.stretch.total.router_grad_norm if ailment.stretch else None
    told = f" (norm at most {norm:.1g})" if norm is not None else ""
    return f"has a router that gets no gradient{told}, so that an even load is no sign of health,"


_CLAIMS: dict[Kind, Callable[[Ailment], str]] = {
    Kind.ROUTER_COLLAPSE: _collapse,
    Kind.DEAD_EXPERTS: _dead,
    Kind.EP_IMBALANCE: _hot,
    Kind.DROP_SPIKE: _drops,
    Kind.ROUTER_NO_GRADIENT: _numb,
}


def _before(ailment: Ailment) -> str:
    """What the same figure was before, where that says more."""
    then, kind = ailment.then, ailment.illness.kind
    if then is None:
        return ""
    if kind is Kind.DROP_SPIKE and then.figures.drop_ratio is not None:
        return f"; before, {share(then.figures.drop_ratio)}"
    if kind is Kind.ROUTER_COLLAPSE:
        counts = then.total.counts
        same = [expert for expert in ailment.busiest if expert < len(counts)]
        return f"; before, these took {share(sum(counts[expert] for expert in same) / then.figures.assignments)}"
    loads = then.figures.ep_loads
    if kind is Kind.EP_IMBALANCE and loads is not None and ailment.illness.ep_ranks:
        return f"; before, {max(loads[rank] for rank in ailment.illness.ep_ranks) * len(loads):.1f}"
    return ""


def _tell_hot_experts(ailment: Ailment, stretch: Stretch) -> Iterator[str]:
    """Which experts a hot EP rank holds, in blocks, and the busiest of them."""
    counts, loads = stretch.total.counts, stretch.figures.ep_loads or ()
    for rank in ailment.illness.ep_ranks[:MOST_RANKS_TOLD]:
        size = len(counts) // max(len(loads), 1)
        block = range(rank * size, (rank + 1) * size)
        if rank < len(loads):
            busiest = sorted(block, key=lambda expert: -counts[expert])[: MOST_EXPERTS_NAMED // 2]
            told = ", ".join(f"{expert} ({share(counts[expert] / stretch.figures.assignments)})" for expert in busiest)
            yield f"EP rank {rank} holds experts {fold_briefly(block)}, the busiest of them: {told}"


def _tell_dead(ailment: Ailment, stretch: Stretch) -> str:
    dead = [expert for expert, count in enumerate(stretch.total.counts) if count == 0] or sorted(ailment.illness.experts)
    return f"experts without a token: {fold_briefly(dead, 60)}"


def _tell(stretch: Stretch) -> str:
    """The figures of a stretch that are known and say something."""
    figures, total = stretch.figures, stretch.total
    told = [f"the busiest expert has {figures.load_ratio_max:.1f} times the mean load"]
    if figures.dead_ratio:
        told.append(f"{share(figures.dead_ratio)} of the experts have no token")
    if figures.ep_load_ratio_max is not None:
        told.append(f"the busiest EP rank {figures.ep_load_ratio_max:.1f} times the mean")
    if figures.drop_ratio is not None:
        told.append(f"{share(figures.drop_ratio)} dropped")
    if total.capacity is not None:
        told.append(f"capacity {total.capacity:g}")
    if total.router_grad_norm is not None:
        told.append(f"gradient norm at most {total.router_grad_norm:.1g}")
    return ", ".join(told)


def _origin(view: EvidenceView) -> tuple[str | None, str]:
    seen = [item for item in view.evidence if isinstance(item.observation, RoutingSeries)]
    origins = list(dict.fromkeys(item.origin for item in seen))
    more = f" and {len(origins) - 1} more" if len(origins) > 1 else ""
    return max((item.observed_at for item in seen if item.observed_at), default=None), f"{origins[0]}{more}"
