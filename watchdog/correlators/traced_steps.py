"""Traced steps show what a job would be like without its slowest ranks: who costs the most, and whether it is a rank at all."""

from collections.abc import Iterable, Iterator

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import name_ranks
from pardbg.watchdog.graph.axes import PIPELINE
from pardbg.watchdog.graph.what_if import WhatIf
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, Kind, Scope
from pardbg.watchdog.model.report import Cost, EvidenceLine, Finding, Subject
from pardbg.watchdog.model.step_trace import StepTrace

SLOW = 1.1
"""T / T_ideal from which a job is called straggling (OSDI '25)."""
EXPLAINED = 0.5
"""The part of the loss that must be won back for a cause to be named (OSDI '25)."""
ALIKE = 0.9
"""From so much likeness of forward and backward on, the length of batches decides (OSDI '25)."""
_ITS_PART = 0.5  # of the largest excess: who has less is among the slowest by number only
_ADVICE = {
    Cause.COMPUTE: "Compare this rank's GPU with another: clocks, temperature, other processes; then leave its host out.",
    Cause.PIPELINE_STAGE: "Move layers from this stage to others, or give the loss and the embedding a stage of their own.",
    Cause.SEQUENCE_LENGTH: "Form batches by the sum of squared lengths, so that every micro-batch costs alike.",
    Cause.ROTATING: "Look for what all ranks share: garbage collection at different steps, one storage, one network.",
    None: "Trace single kernels (torch.profiler) of a few ranks: the loss is spread over many of them.",
}


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding a trace."""
    for what_if in situation.what_ifs:
        if what_if.slowdown >= SLOW:
            yield _describe(situation, what_if)


def _describe(situation: Situation, what_if: WhatIf) -> Finding:
    cause, culprits, told, won = _explain(situation, what_if)
    named = {rank for subject in culprits for rank in subject.ranks}
    ranks = {rank for ranks in what_if.ranks_by_stage.values() for rank in ranks}
    lost = f"a step takes {what_if.real_s:.2f} s where {what_if.ideal_s:.2f} s would do if all were alike"
    return Finding(
        kind=Kind.STRAGGLER,
        cause=cause,
        confidence=Confidence.SUPPORTED if won >= EXPLAINED else Confidence.SUGGESTED,
        culprits=culprits,
        victims=tuple(sorted(ranks - named)) if named else (),
        cost=Cost(slowdown=round(what_if.slowdown, 3), share=round(1 - 1 / what_if.slowdown, 3)),
        claim=f"{told}: {lost}",
        evidence=tuple(_lines(situation, what_if)),
        advice=(_ADVICE[cause],),
    )


def _explain(situation: Situation, what_if: WhatIf) -> tuple[Cause | None, tuple[Subject, ...], str, float]:
    """The cause, who it is, in words, and the part of the loss that this explains."""
    if what_if.won_by_evenness >= EXPLAINED:
        return *_uneven(what_if), what_if.won_by_evenness
    if what_if.won_by_workers >= EXPLAINED:
        return *_slow_workers(situation, what_if), what_if.won_by_workers
    if what_if.won_by_last_stage >= EXPLAINED:
        return *_slow_stage(what_if, max(what_if.ranks_by_stage)), what_if.won_by_last_stage
    if len(what_if.ranks_by_stage) > 1 and what_if.won_by_costliest_stage >= EXPLAINED:
        return *_slow_stage(what_if, what_if.costliest_stage), what_if.won_by_costliest_stage
    return None, (), "ranks wait for each other, and no single rank or stage accounts for it", 0.0


def _uneven(what_if: WhatIf) -> tuple[Cause, tuple[Subject, ...], str]:
    if what_if.likeness >= ALIKE:
        told = "batches differ in length, and every rank is slow with the long ones, forward and backward alike"
        return Cause.SEQUENCE_LENGTH, (), told
    return Cause.ROTATING, (), "computations of every rank take long now and then, each at its own time"


def _slow_workers(situation: Situation, what_if: WhatIf) -> tuple[Cause | None, tuple[Subject, ...], str]:
    excess = what_if.excess
    most = max(excess[rank] for rank in what_if.slowest_workers)
    ranks = [rank for rank in what_if.slowest_workers if excess[rank] >= _ITS_PART * most]
    is_stage_itself = any(ranks == list(stage) for stage in what_if.ranks_by_stage.values())
    stride = situation.view.traces.stride
    alike = f"; one rank of {stride} was traced: it may stand for the others" if stride > 1 else ""
    culprits = tuple(
        situation.subject(rank, f"its computations take {_times(excess[rank])} the usual time{alike}") for rank in ranks
    )
    who = f"{name_ranks(ranks)} {'needs' if len(ranks) == 1 else 'need'} {_times(most)} the usual time to compute"
    if is_stage_itself and len(what_if.ranks_by_stage) > 1:
        return None, culprits, f"{who} (all of its pipeline stage: its work may be more, or its GPU slower)"
    return Cause.COMPUTE, culprits, who


def _slow_stage(what_if: WhatIf, stage: int) -> tuple[Cause, tuple[Subject, ...], str]:
    ranks = what_if.ranks_by_stage[stage]
    mean = sum(what_if.excess.get(rank, 0.0) for rank in ranks) / len(ranks)
    why = "all its ranks compute for longer, in every step"
    subject = Subject(scope=Scope.STAGE, ranks=ranks, coords={PIPELINE: stage}, why=why)
    which = "the last pipeline stage" if stage == max(what_if.ranks_by_stage) else f"pipeline stage {stage}"
    return Cause.PIPELINE_STAGE, (subject,), f"{which} ({name_ranks(ranks)}) needs {_times(mean)} the usual time to compute"


def _times(excess: float) -> str:
    return f"{1 + excess:.2f} times"


def _lines(situation: Situation, what_if: WhatIf) -> Iterator[EvidenceLine]:
    item = next(item for item in situation.view.evidence if item.observation is what_if.trace)
    played = (
        f"played again from the order of its operations: T = {what_if.real_s:.3f} s, with everything as usual "
        f"T_ideal = {what_if.ideal_s:.3f} s, slowdown {what_if.slowdown:.3f}, in {_count_steps(what_if.trace)}"
    )
    won = (
        f"of the loss, repairing {name_ranks(what_if.slowest_workers)} wins back {what_if.won_by_workers:.3f} (M_W), the last "
        f"stage {what_if.won_by_last_stage:.3f} (M_S), even batches {what_if.won_by_evenness:.3f}"
    )
    for text in (played, won):
        yield EvidenceLine(source=CollectorName.GPU, rank=None, host=None, at=item.observed_at, text=text, origin=item.origin)


def _count_steps(trace: StepTrace) -> str:
    steps = len({operation.step for operation in trace.operations})
    left = f" (and {trace.left_steps} older ones left out)" if trace.left_steps else ""
    return f"{steps} {'step' if steps == 1 else 'steps'}{left}"
