"""Traced steps as rounds in which who communicates least came last: kernels of NCCL spin while they wait.

A long backward pass or a long collective is what victims show: the one they wait for is the one that does not wait.
"""

from collections.abc import Callable, Mapping
from statistics import median

from pardbg.watchdog.graph.groups import Group
from pardbg.watchdog.graph.lateness import Late, find_late
from pardbg.watchdog.graph.rounds import Round, Rounds
from pardbg.watchdog.model.names import Cause
from pardbg.watchdog.model.step_trace import KernelTimes, StepTimes

FEWEST_STEPS = 3
"""Of a trace: what is long is its look at a step, so fewer do than of collectives."""
CLEAR = 0.8
"""The part of the lateness that a reason must account for to be named."""
_NS_PER_S = 1_000_000_000
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
