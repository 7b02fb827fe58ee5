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
        replicas = part.costs(lambda operation: operation.replica)
        stages = part.costs(lambda operation: operation.stage)
        cost = {item.rank: min(replicas[item.replica], stages[item.stage]) for item in self.trace.operations}
        ascending = sorted(cost, key=lambda rank: (-cost[rank], rank))
        return tuple(sorted(ascending[: -(-len(cost) * WORKERS_SHARE_PERCENT // 100)]))

    @cached_property
    def stages(self) -> tuple[int, ...]:
        """Of the pipeline, ascending."""
        return tuple(sorted({operation.stage for operation in self.trace.operations}))

    @cached_property
    def won_by_workers(self) -> float:
        """M_W: the part of the loss that is won back if the slowest workers are repaired."""
        workers = frozenset(self.slowest_workers)
        return self._won(lambda operation: operation.rank in workers)

    def won_by_stage(self, stage: int) -> float:
        """M_S for the last stage: the same for all ranks of a stage."""
        return self._won(lambda operation: operation.stage == stage)

    @cached_property
    def won_by_evenness(self) -> float:
        """The same if every rank took its own mean time for each computation: what batches of unequal length cost."""
        own: dict[tuple[int, int], list[float]] = {}
        is_compute = [kind in COMPUTE for kind in self.trace.kinds]
        for operation, time_s in zip(self.trace.operations, self.played, strict=True):
            own.setdefault((operation.rank, operation.kind), []).append(time_s)
        means = {key: fmean(times) for key, times in own.items()}
        even = [
            means[operation.rank, operation.kind] if is_compute[operation.kind] else time_s
            for operation, time_s in zip(self.trace.operations, self.played, strict=True)
        ]
        return self._share(self._play(even))

    def ranks_of(self, stage: int) -> tuple[int, ...]:
        """Who computes a stage, ascending."""
        return tuple(sorted({operation.rank for operation in self.trace.operations if operation.stage == stage}))

    def costs(self, of: Callable[[TracedOperation], int]) -> dict[int, float]:
        """By what share the ideal step grows if only these operations take their recorded times."""
        found = sorted({of(operation) for operation in self.trace.operations})
        return {one: self._play(self._mixed(lambda operation, one=one: of(operation) != one)) for one in found}

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
                if ends[need] > start:
                    start = ends[need]
            for member in gathering.members:
                ends[member] = start + times[member]
        longest: dict[int, float] = {}
        for operation, end in zip(self.trace.operations, ends, strict=True):
            if end > longest.get(operation.step, 0.0):
                longest[operation.step] = end
        return fmean(longest.values()) if longest else 0.0


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
