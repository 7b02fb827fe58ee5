"""A rank that lives but will issue no more: an exception has taken it out of what the others are still in.

Its process runs, so nothing looks dead: it stands in an ``except`` clause, in clean-up, or at the interpreter's exit. Where
nobody took its stack, torch's hook for exceptions that nothing caught says so in its log.
"""

from collections.abc import Iterable

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, name_meeting, since, stack_line, wait_verb, waiting_line
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, Kind
from pardbg.watchdog.model.report import EvidenceLine, Finding


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding for all such ranks that others wait for."""
    ranks = tuple(rank for rank in situation.graph.roots if situation.is_unwound(rank))
    if ranks and not situation.view.ended_ranks:  # the end of a process comes first: exceptions follow from it
        yield _describe(situation, ranks)


def _describe(situation: Situation, ranks: tuple[int, ...]) -> Finding:
    missed = [meeting for rank in ranks for meeting in situation.graph.missed_by(rank)]
    meeting = max(missed, key=lambda meeting: situation.waiting_s(meeting) or 0.0)
    victims = situation.graph.victims(ranks)
    is_still = all(situation.standings[rank].is_still for rank in ranks)
    ends = "; ".join(f"rank {rank} {_end(situation, rank)}" for rank in ranks[:4])
    they = "it" if len(ranks) == 1 else "they"
    is_seen = any(situation.standings[rank].position is not None for rank in ranks)
    alive = f"{they} {'lives' if len(ranks) == 1 else 'live'}, and" if is_seen else they
    return Finding(
        kind=Kind.DEAD_RANK,
        cause=Cause.EXCEPTION,
        confidence=Confidence.ESTABLISHED if is_still else Confidence.SUPPORTED,
        culprits=tuple(situation.subject(rank, _end(situation, rank)) for rank in ranks),
        victims=victims,
        group=situation.meeting_group(meeting.key),
        collective=situation.collective_ref(meeting),
        since_s=situation.waiting_s(meeting),
        claim=(
            f"{ends}; {alive} will not join {name_meeting(situation, meeting)}; "
            f"{count_ranks(victims)} {wait_verb(victims)}{since(situation, meeting)}"
        ),
        evidence=(waiting_line(situation, meeting), *(line for rank in ranks for line in _evidence(situation, rank))),
        advice=("Let an exception end the process: a rank that swallows it leaves all others waiting.",),
    )


def _end(situation: Situation, rank: int) -> str:
    traceback = situation.view.tracebacks.get(rank)
    what = f"raised {traceback.exception}" if traceback is not None else "caught an exception"
    position = situation.standings[rank].position
    if position is None:
        return f"{what}, which nothing caught, and has left what the others are in"
    return f"{what} and has left what the others are in: it is {position.words}"


def _evidence(situation: Situation, rank: int) -> Iterable[EvidenceLine]:
    if situation.standings[rank].position is not None:
        yield stack_line(situation, rank)
    traceback = situation.view.tracebacks.get(rank)
    if traceback is not None:
        where = f", raised at {traceback.where}" if traceback.where else ""
        yield situation.view.line(CollectorName.RANK_LOG, rank, f"{traceback.exception}{where}")
