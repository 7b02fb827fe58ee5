"""Traced steps as rounds in which who communicates least came last: kernels of NCCL spin while they wait.

A long backward pass or a long collective is what victims show: the one they wait for is the one that does not wait.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

from pardbg.watchdog.graph.groups import Group
from pardbg.watchdog.graph.lateness import LATE_SHARE, Late, find_late
from pardbg.watchdog.graph.rounds import Round, Rounds
from pardbg.watchdog.model.names import Cause
from pardbg.watchdog.model.step_trace import KernelTimes, StepTimes

FEWEST_STEPS = 3
"""Of a trace: what is long is its look at a step, so fewer do than of collectives."""
CLEARLY_SLOWER = 1.5
"""Times as long as any of the others a rank must compute to be one of a slow part."""
CLEAR = 0.8
"""The part of the lateness that a reason must account for to be named."""
_NS_PER_S = 1_000_000_000
_LEAST_S = 1e-6
_REASONS: tuple[tuple[Cause, Callable[[StepTimes], float]], ...] = (
    (Cause.DATA_LOADING, lambda step: step.loading_s),
    (Cause.H2D, lambda step: step.copying_s),
    (Cause.COMPUTE, lambda step: step.compute_s),
)


def find_late_in_traces(times: Mapping[int, KernelTimes]) -> Late | None:
    """Who makes the others wait in the steps that all of these ranks have traced; None if nobody does."""
    by_rank = {rank: {step.step: step for step in seen.steps} for rank, seen in sorted(times.items())}
    if len(by_rank) < 2:
        return None
    shared = sorted(set.intersection(*(set(steps) for steps in by_rank.values())))
    group = Group(0, "traced", "traced", tuple(by_rank))
    rounds = tuple(_round(group, {rank: steps[number] for rank, steps in by_rank.items()}) for number in shared)
    spans_s = [median(steps[number].span_s for steps in by_rank.values()) for number in shared]
    return find_late(Rounds(group, rounds, max(1, round(sum(spans_s) * _NS_PER_S))), FEWEST_STEPS) if rounds else None


@dataclass(frozen=True)
class SlowPart:
    """Ranks that compute much longer than all others, who wait for them, where they are too many to be the odd ones out.

    ``slow_s`` and ``quick_s`` are the mean seconds a step of either in kernels that compute; ``share`` of the time is lost.
    """

    ranks: tuple[int, ...]
    others: tuple[int, ...]
    slow_s: float
    quick_s: float
    share: float


def find_slow_part(times: Mapping[int, KernelTimes]) -> SlowPart | None:
    """The one clear gap between ranks by what they compute, if those above it wait little and those below it long."""
    means = {rank: _mean(lambda step: step.compute_s, seen) for rank, seen in sorted(times.items()) if seen.steps}
    if len(means) < 2 or any(len(seen.steps) < FEWEST_STEPS for seen in times.values()):
        return None
    ordered = sorted(means, key=lambda rank: means[rank])
    gaps = [means[later] / max(means[earlier], _LEAST_S) for earlier, later in itertools.pairwise(ordered)]
    cut = max(range(len(gaps)), key=lambda place: gaps[place]) + 1
    quick, slow = ordered[:cut], ordered[cut:]
    waits = {rank: _mean(lambda step: step.communication_s, times[rank]) for rank in means}
    lost_s = min(waits[rank] for rank in quick) - max(waits[rank] for rank in slow)
    share = lost_s / max(_mean(lambda step: step.span_s, times[rank]) for rank in means)
    if gaps[cut - 1] < CLEARLY_SLOWER or share < LATE_SHARE:
        return None
    slow_s, quick_s = (sum(means[rank] for rank in ranks) / len(ranks) for ranks in (slow, quick))
    return SlowPart(tuple(sorted(slow)), tuple(sorted(quick)), slow_s, quick_s, min(share, 0.99))


def reason_of(rank: int, late: Late, times: Mapping[int, KernelTimes]) -> Cause | None:
    """What a late rank does for longer than the others, if that accounts for its lateness."""
    for cause, of in _REASONS:
        others = [_mean(of, times[other]) for other in late.group.ranks if other not in late.ranks]
        if _mean(of, times[rank]) - median(others) >= CLEAR * late.usual_ns / _NS_PER_S:
            return cause
    return None


def _round(group: Group, steps: Mapping[int, StepTimes]) -> Round:
    longest = max(step.communication_s for step in steps.values())
    number = next(iter(steps.values())).step
    return Round(group, number, {rank: round((longest - step.communication_s) * _NS_PER_S) for rank, step in steps.items()})


def _mean(of: Callable[[StepTimes], float], times: KernelTimes) -> float:
    return sum(map(of, times.steps)) / len(times.steps)
