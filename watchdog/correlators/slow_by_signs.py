"""A GPU, a host or an allocator is slow where no recorder tells who is late: whoever works in step with it must wait."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.slow_words import SIGN_ADVICE, sign_lines
from pardbg.watchdog.correlators.wording import name_ranks
from pardbg.watchdog.graph.slow_signs import ON_DEVICE
from pardbg.watchdog.model.names import Cause, Confidence, Kind, Scope
from pardbg.watchdog.model.report import Finding, Subject


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding a cause. Nothing of a job that hangs or has ended, and nothing of ranks whose lateness is known."""
    if situation.is_over or situation.is_stuck:
        return
    measured = {rank for rounds in situation.rounds for rank in rounds.group.ranks}
    signs = {rank: sign for rank, sign in sorted(situation.slow_signs.items()) if rank not in measured}
    for cause in dict.fromkeys(sign.cause for sign in signs.values()):
        yield _describe(situation, cause, [rank for rank, sign in signs.items() if sign.cause is cause])


def _describe(situation: Situation, cause: Cause, ranks: list[int]) -> Finding:
    words = situation.slow_signs[ranks[0]].words
    more = f" (so it is with {name_ranks(ranks[1:])})" if len(ranks) > 1 else ""
    return Finding(
        kind=Kind.STRAGGLER,
        cause=cause,
        confidence=Confidence.SUPPORTED if cause in ON_DEVICE else Confidence.SUGGESTED,
        culprits=tuple(_subjects(situation, cause, ranks)),
        victims=tuple(rank for rank in situation.standings if rank not in ranks),
        claim=f"rank {ranks[0]} is slow: its {words}{more}; all that work in step with it wait",
        evidence=tuple(sign_lines(situation, ranks)),
        advice=(SIGN_ADVICE[cause],),
    )


def _subjects(situation: Situation, cause: Cause, ranks: list[int]) -> Iterator[Subject]:
    """GPUs and ranks one by one; of a quota the host, if all its ranks have it."""
    left = set(ranks)
    for host, whole in situation.ranks_by_host.items() if cause is Cause.CPU_CONTENTION else ():
        if len(whole) > 1 and left.issuperset(whole):
            why = "its quota keeps all its ranks from running"
            yield Subject.of_host(host, why, whole)
            left.difference_update(whole)
    for rank in sorted(left):
        one = situation.subject(rank, f"its {situation.slow_signs[rank].words}")
        yield replace(one, scope=Scope.DEVICE) if cause in ON_DEVICE else one
