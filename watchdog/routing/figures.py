"""The figures of one layer in one step, from its counts. Definitions: knowledge/moe-routing.md, section 2.

Cost: about 60 us for 256 experts, in plain Python.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, isfinite, log, sqrt

from pardbg.watchdog.model.routing import RoutingRow

ABSURD = 2**62
"""More assignments than a step can have; sums of them would not fit 8 bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerFigures:
    """What one row tells. f is an expert's share of the A assignments, r = E f its load over the mean load. None: not known.

    Attributes:
        fair: assignments an expert would have were all alike, A / E; thresholds and noise floors scale with it.
        load_ratio_max: largest r; 1 where uniform, at most E / k.
        max_violation: largest r - 1 (MaxVio of arXiv 2408.15664).
        variation: standard deviation of the counts over their mean (CV; Shazeer 2017 has its square as a loss).
        deficit: ln E - entropy of f, nats: the KL divergence of the load from uniform.
        mean_entropy_ratio: entropy of f / ln E; 1 where uniform.
        effective_experts: exp(entropy of f), between 1 and E.
        token_entropy_ratio: mean entropy of one token's probabilities / ln E. Low and an even load: a router that is sure.
            Near 1: one that has learnt nothing.
        dead_ratio: share of experts without one assignment in this step alone; chance explains it where ``fair`` is small.
        top_ratio: largest f; at most 1 / k.
        drop_ratio: assignments dropped by the mask that was applied / A; / (A + those) where the counts are what is left.
        predicted_drop_ratio: the same by max(0, count - capacity).
        z: mean of (logsumexp of logits) squared; (ln E) squared for zero logits.
        aux_loss: balancing loss of this layer, 1 where uniform.
        ep_loads: share of A of each EP rank, experts being placed in blocks.
        ep_load_ratio_max: largest of them over their mean.
        router_grad_norm: norm of the gradient of the router's weights.
    """

    step: int
    experts: int
    assignments: int
    fair: float
    load_ratio_max: float
    max_violation: float
    variation: float
    deficit: float
    mean_entropy_ratio: float
    effective_experts: float
    token_entropy_ratio: float | None
    dead_ratio: float
    top_ratio: float
    drop_ratio: float | None
    predicted_drop_ratio: float | None
    z: float | None
    aux_loss: float | None
    ep_loads: tuple[float, ...] | None
    ep_load_ratio_max: float | None
    router_grad_norm: float | None
    loss: float | None


def measure(row: RoutingRow) -> LayerFigures | None:
    """The figures of a row; None where it has no load to speak of (no assignment, one expert, a negative or absurd count)."""
    counts = row.counts
    experts, total = len(counts), sum(counts)
    if experts < 2 or not 0 < total < ABSURD or min(counts) < 0:
        return None
    fair, largest, shortfall = total / experts, max(counts), deficit(counts)
    loads = ep_loads(counts, row.ep_size)
    return LayerFigures(
        step=row.step,
        experts=experts,
        assignments=total,
        fair=fair,
        load_ratio_max=largest / fair,
        max_violation=largest / fair - 1,
        variation=sqrt(max(0.0, sum(count * count for count in counts) / experts - fair * fair)) / fair,
        deficit=shortfall,
        mean_entropy_ratio=1 - shortfall / log(experts),
        effective_experts=experts * exp(-shortfall),
        token_entropy_ratio=_over(row.entropy, log(experts)),
        dead_ratio=counts.count(0) / experts,
        top_ratio=largest / total,
        drop_ratio=_over(row.dropped, wanted(row)),
        predicted_drop_ratio=_over(row.predicted_dropped, wanted(row)),
        z=_known(row.z),
        aux_loss=_known(row.aux_loss),
        ep_loads=loads,
        ep_load_ratio_max=max(loads) * len(loads) if loads else None,
        router_grad_norm=_known(row.router_grad_norm),
        loss=_known(row.loss),
    )


def wanted(row: RoutingRow) -> float:
    """All assignments of a row, those that were dropped included."""
    return sum(row.counts) + (max(0.0, _known(row.dropped) or 0.0) if row.counts_are_kept else 0)


def deficit(counts: Sequence[int]) -> float:
    """KL divergence of the load from uniform: ln E - entropy of the load, nats, never below 0."""
    total = sum(counts)
    return max(0.0, log(len(counts)) - log(total) + sum(count * log(count) for count in counts if count) / total)


def ep_loads(counts: Sequence[int], ep_size: int | None) -> tuple[float, ...] | None:
    """Share of each EP rank; None without expert parallelism, or where the experts do not divide among the ranks."""
    if ep_size is None or ep_size < 2 or len(counts) % ep_size:
        return None
    block, total = len(counts) // ep_size, sum(counts)
    return tuple(sum(counts[first : first + block]) / total for first in range(0, len(counts), block))


def _known(value: float | None) -> float | None:
    """A finite number, else None: a NaN would make every comparison false and hide what follows."""
    return value if value is not None and isfinite(value) else None


def _over(value: float | None, whole: float) -> float | None:
    known = _known(value)
    return None if known is None else known / whole
