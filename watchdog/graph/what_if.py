"""How much faster a traced job would run if all its ranks were alike, and how much of that one worker or stage costs.

The steps are played again from the order of their operations: with the times that were recorded (T), and with every kind of
operation at its usual time, the mean of what is computed, the median of what is communicated (T_ideal). S = T / T_ideal is the
slowdown. What a worker costs shows when only its operations get their usual times: the part of T - T_ideal that this wins back.

The method, its thresholds and the names of the figures are those of "Understanding Stragglers in Large Model Training Using
What-if Analysis" (OSDI '25).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, median

from pardbg.watchdog.graph.step_order import COMMUNICATION, COMPUTE, Gathering, order_steps
from pardbg.watchdog.model.garbage import without_garbage_collection
from pardbg.watchdog.model.step_trace import StepTrace, TracedOperation

WORKERS_SHARE_PERCENT = 3
MOST_SEARCHED = 400_000
"""Operations in all plays that look for the slowest workers, together; they are looked for in the newest steps."""

Times = Sequence[float]


@dataclass(frozen=True)
class WhatIf:
    """The figures of one trace. ``played`` and ``usual`` are the times of operations in order, seconds."""

    trace: StepTrace
    order: tuple[Gathering, ...]
    played: Times
    usual: Times

    @classmethod
    @without_garbage_collection()
    def of(cls, trace: StepTrace) -> "WhatIf | None":
        """Prepares the plays; None where operations wait for each other in a circle, or none takes any time."""
        order = order_steps(trace)
        if not order:
            return None
        played = _own_times(trace.operations, order)
        what_if = cls(trace, order, played, _usual_times(trace, played))
        return what_if if what_if.ideal_s > 0 else None

    @cached_property
    def real_s(self) -> float:
        """T: the mean of the steps as they were."""
        return self._play(self.played)

    @cached_property
    def ideal_s(self) -> float:
        """T_ideal: the same if all ranks, stages and steps were alike."""
        return self._play(self.usual)

    @property
    def slowdown(self) -> float:
        """S: T / T_ideal."""
        return self.real_s / self.ideal_s

    @cached_property
    def slowest_workers(self) -> tuple[int, ...]:
        """The 3 % of ranks (at least one) that are in the replicas and stages whose times cost most."""
        part = self._newest_steps()
        replicas, stages = part.costs_of_replicas, part.costs_of_stages
        cost = {item.rank: min(replicas[item.replica], stages[item.stage]) for item in part.trace.operations}
        descending = sorted(cost, key=lambda rank: (-cost[rank], rank))
        return tuple(sorted(descending[: -(-len(cost) * WORKERS_SHARE_PERCENT // 100)]))

    @cached_property
    def excess(self) -> dict[int, float]:
        """By what part each rank's computations take longer than usual; negative where they take less."""
        is_compute = [kind in COMPUTE for kind in self.trace.kinds]
        sums: dict[int, list[float]] = {}
        for operation, played, usual in zip(self.trace.operations, self.played, self.usual, strict=True):
            if is_compute[operation.kind]:
                pair = sums.setdefault(operation.rank, [0.0, 0.0])
                pair[0] += played
                pair[1] += usual
        return {rank: played / usual - 1 if usual else 0.0 for rank, (played, usual) in sums.items()}

    @cached_property
    def ranks_by_stage(self) -> dict[int, tuple[int, ...]]:
        """Who computes which stage, all ascending."""
        stages: dict[int, set[int]] = {}
        for operation in self.trace.operations:
            stages.setdefault(operation.stage, set()).add(operation.rank)
        return {stage: tuple(sorted(stages[stage])) for stage in sorted(stages)}

    @cached_property
    def costliest_stage(self) -> int:
        """The stage whose times cost most."""
        costs = self._newest_steps().costs_of_stages
        return max(costs, key=costs.__getitem__)

    @cached_property
    def won_by_workers(self) -> float:
        """M_W: the part of the loss that is won back if the slowest workers are repaired."""
        workers = frozenset(self.slowest_workers)
        return self._won(lambda operation: operation.rank in workers)

    @cached_property
    def won_by_last_stage(self) -> float:
        """M_S: the same if all ranks of the last stage are repaired."""
        return self._won_by_stage(max(self.ranks_by_stage))

    @cached_property
    def won_by_costliest_stage(self) -> float:
        """The same for the stage whose times cost most."""
        return self._won_by_stage(self.costliest_stage)

    @cached_property
    def won_by_evenness(self) -> float:
        """The same if every rank took its own mean time for each computation: what batches of unequal length cost."""
        means = self._own_means
        chosen = zip(self.trace.operations, self.played, strict=True)
        even = [means.get((operation.rank, operation.kind), time_s) for operation, time_s in chosen]
        return self._share(self._play(even))

    @cached_property
    def likeness(self) -> float:
        """How alike, from -1 to 1, the forward and the backward computation of a batch differ from their rank's usual ones."""
        pairs = [pair for pair in self._ratios().values() if len(pair) == len(COMPUTE)]
        first, second = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        return _correlation(first, second) if len(pairs) > 1 else 0.0

    def _ratios(self) -> dict[tuple[int, int, int], list[float]]:
        """By rank, step and number of the batch: its computations against the rank's mean."""
        means = self._own_means
        ratios: dict[tuple[int, int, int], list[float]] = {}
        for operation, time_s in zip(self.trace.operations, self.played, strict=True):
            mean = means.get((operation.rank, operation.kind))
            if mean:
                key = operation.rank, operation.step, operation.number
                ratios.setdefault(key, []).append(time_s / mean)
        return ratios

    @cached_property
    def _own_means(self) -> dict[tuple[int, int], float]:
        """The mean time of each kind of computation, by rank and kind."""
        is_compute = [kind in COMPUTE for kind in self.trace.kinds]
        own: dict[tuple[int, int], list[float]] = {}
        for operation, time_s in zip(self.trace.operations, self.played, strict=True):
            if is_compute[operation.kind]:
                own.setdefault((operation.rank, operation.kind), []).append(time_s)
        return {key: fmean(times) for key, times in own.items()}

    @cached_property
    def costs_of_replicas(self) -> dict[int, float]:
        """The length of the ideal step if only one replica's operations take their recorded times, by replica; seconds."""
        return self._costs(lambda operation: operation.replica)

    @cached_property
    def costs_of_stages(self) -> dict[int, float]:
        """The same by stage."""
        return self._costs(lambda operation: operation.stage)

    def _costs(self, of: Callable[[TracedOperation], int]) -> dict[int, float]:
        found = sorted({of(operation) for operation in self.trace.operations})
        return {one: self._play(self._mixed(_is_not(of, one))) for one in found}

    def _newest_steps(self) -> "WhatIf":
        """A part of this that is not too large to be played for each replica and stage."""
        operations = self.trace.operations
        plays = len({item.replica for item in operations}) + len({item.stage for item in operations})
        sizes = Counter(item.step for item in operations)
        left, kept = MOST_SEARCHED // plays, set[int]()
        for step in sorted(sizes, reverse=True):
            left -= sizes[step]
            if left < 0 and kept:
                break
            kept.add(step)
        if len(kept) == len(sizes):
            return self
        chosen = [index for index, item in enumerate(operations) if item.step in kept]
        part = StepTrace(kinds=self.trace.kinds, operations=tuple(operations[index] for index in chosen))
        played, usual = ([times[index] for index in chosen] for times in (self.played, self.usual))
        return WhatIf(part, order_steps(part), played, usual)

    def _won_by_stage(self, stage: int) -> float:
        return self._won(lambda operation: operation.stage == stage)

    def _won(self, is_repaired: Callable[[TracedOperation], bool]) -> float:
        return self._share(self._play(self._mixed(is_repaired)))

    def _share(self, repaired_s: float) -> float:
        lost_s = self.real_s - self.ideal_s
        return (self.real_s - repaired_s) / lost_s if lost_s > 0 else 0.0

    def _mixed(self, is_usual: Callable[[TracedOperation], bool]) -> list[float]:
        chosen = zip(self.trace.operations, self.played, self.usual, strict=True)
        return [usual if is_usual(operation) else played for operation, played, usual in chosen]

    def _play(self, times: Times) -> float:
        """The mean length of a step, seconds."""
        ends = [0.0] * len(times)
        for gathering in self.order:
            start = 0.0
            for need in gathering.needs:
                if ends[need] > start:  # noqa: PLR1730 - a call here costs a third of the time
                    start = ends[need]
            for member in gathering.members:
                ends[member] = start + times[member]
        longest: dict[int, float] = {}
        for operation, end in zip(self.trace.operations, ends, strict=True):
            if end > longest.get(operation.step, 0.0):
                longest[operation.step] = end
        return fmean(longest.values()) if longest else 0.0


def _is_not(of: Callable[[TracedOperation], int], one: int) -> Callable[[TracedOperation], bool]:
    return lambda operation: of(operation) != one


def _own_times(operations: Sequence[TracedOperation], order: Iterable[Gathering]) -> list[float]:
    """What each takes once its last member has come."""
    times = [0.0] * len(operations)
    for gathering in order:
        start = max(operations[member].start_s for member in gathering.members)
        for member in gathering.members:
            times[member] = max(0.0, operations[member].end_s - start)
    return times


def _usual_times(trace: StepTrace, times: Times) -> list[float]:
    by_kind: dict[int, list[float]] = {}
    for operation, time_s in zip(trace.operations, times, strict=True):
        by_kind.setdefault(operation.kind, []).append(time_s)
    usual = {kind: (median if trace.kinds[kind] in COMMUNICATION else fmean)(found) for kind, found in by_kind.items()}
    return [usual[operation.kind] for operation in trace.operations]


def _correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Pearson's; 0 where one of them does not vary, for which `statistics.correlation` raises."""
    middle, other = fmean(first), fmean(second)
    spread = sum((one - middle) ** 2 for one in first) * sum((one - other) ** 2 for one in second)
    together = sum((one - middle) * (two - other) for one, two in zip(first, second, strict=True))
    return together / spread**0.5 if spread > 0 else 0.0
