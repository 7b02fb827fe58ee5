"""Profiles of single ranks show who computes while the GPUs of all others spin in collectives."""

from collections.abc import Iterable, Iterator

from pardbg.watchdog.correlators.situation import NS_PER_S, Situation
from pardbg.watchdog.correlators.wording import name_ranks
from pardbg.watchdog.graph.lateness import Late
from pardbg.watchdog.graph.traced_rounds import SlowPart, find_late_in_traces, find_slow_part, reason_of
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, Kind
from pardbg.watchdog.model.report import Cost, EvidenceLine, Finding

MAX_CANDIDATES = 64
_DOES = {
    Cause.DATA_LOADING: "waits for its data",
    Cause.H2D: "copies to its GPU",
    Cause.COMPUTE: "computes",
    None: "does not keep its GPU busy",
}
_ADVICE = {
    Cause.DATA_LOADING: "More loader workers, prefetching, or shards of one size for this rank.",
    Cause.H2D: "Pin the memory of batches and copy ahead; compare the PCIe link of this GPU with another's.",
    Cause.COMPUTE: "Compare the clocks of this GPU with another's, and what its rank is given to compute.",
    Cause.ROTATING: "Look for what all ranks share: garbage collection, batches of unequal length, one storage.",
    None: "Look at what the host does before the GPU gets work: `py-spy dump` of this rank and of another, a few times.",
}


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding for each rank that is late in the traced steps; one without a rank where it is always another."""
    late = find_late_in_traces(situation.view.traces.kernels)
    if late is None:
        part = find_slow_part(situation.view.traces.kernels)
        if part is not None:
            yield _describe_part(situation, part)
        return
    if not late.ranks:
        told = f"in each of {late.count} traced steps another rank makes the others wait"
        yield _finding(situation, late, None, Cause.ROTATING, told)
    for rank in late.ranks:
        cause = reason_of(rank, late, situation.view.traces.kernels)
        told = f"rank {rank} {_DOES[cause]} for {late.usual_ns / NS_PER_S:.2f} s a step while the GPUs of all others wait"
        yield _finding(situation, late, rank, cause, told)


def _describe_part(situation: Situation, part: SlowPart) -> Finding:
    """So many ranks are no outliers: they may have more to do, as a stage of a pipeline has, or slower GPUs."""
    told = f"{name_ranks(part.ranks)}: {part.slow_s:.3f} s a step in kernels that compute"
    usual = f"{name_ranks(part.others)}: {part.quick_s:.3f} s"
    why = f"computes {part.slow_s / max(part.quick_s, 1e-6):.1f} times as long as {name_ranks(part.others)}"
    return Finding(
        kind=Kind.STRAGGLER,
        confidence=Confidence.SUGGESTED,
        candidates=tuple(situation.subject(rank, why) for rank in part.ranks[:MAX_CANDIDATES]),
        victims=part.others,
        cost=Cost.of_share(part.share),
        claim=(
            f"{name_ranks(part.ranks)} {'computes' if len(part.ranks) == 1 else 'compute'} for {part.slow_s:.2f} s a step, the "
            f"others for {part.quick_s:.2f} s, and wait: {part.share:.0%} of the time is lost; more work or slower GPUs"
        ),
        evidence=(situation.view.line(CollectorName.GPU, part.ranks[0], f"{told}; {usual}"),),
        advice=(
            "Compare what these ranks are given to compute: a stage with more layers, uneven shards; then their GPUs' clocks.",
        ),
    )


def _finding(situation: Situation, late: Late, rank: int | None, cause: Cause | None, told: str) -> Finding:
    why = "its GPU spends the least time in communication"
    return Finding(
        kind=Kind.STRAGGLER,
        cause=cause,
        confidence=Confidence.SUPPORTED,
        culprits=() if rank is None else (situation.subject(rank, why),),
        victims=tuple(other for other in late.group.ranks if other not in late.ranks) if late.ranks else (),
        cost=Cost.of_share(late.share),
        claim=f"{told}: {late.share:.0%} of the time is lost",
        evidence=tuple(_lines(situation, late)),
        advice=(_ADVICE[cause],),
    )


def _lines(situation: Situation, late: Late) -> Iterator[EvidenceLine]:
    """The late ones against the rest: whoever spends long in collectives only waits there."""
    others = [rank for rank in late.group.ranks if rank not in late.ranks]
    for ranks in (late.ranks, others):
        if ranks:
            steps = [step for rank in ranks for step in situation.view.traces.kernels[rank].steps]
            computed, communicated = (
                sum(of) / len(steps) for of in ([step.compute_s for step in steps], [step.communication_s for step in steps])
            )
            text = f"{name_ranks(ranks)}: {computed:.3f} s a step in kernels that compute, {communicated:.3f} s in NCCL's"
            yield situation.view.line(CollectorName.GPU, ranks[0], text)
