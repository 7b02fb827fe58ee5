"""Who the others waited for, as logs name them: a monitored barrier, a key of the store, an expert-parallel dispatch.

Whose own stack shows it busy on the host is waited for and not accused: one sample does not show that it stands still.
"""

from collections.abc import Iterable

from pardbg.watchdog.correlators.log_words import MAX_LINES, are_logs_alone, log_line
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, name_ranks, stack_line, wait_verb
from pardbg.watchdog.graph.log_facts import LogFact
from pardbg.watchdog.graph.standing import Stance
from pardbg.watchdog.model.log_event import WAITS, BarrierFailed, DispatchTimeout, StallNamed, StoreTimeout
from pardbg.watchdog.model.names import Cause, Confidence, Kind
from pardbg.watchdog.model.report import Finding
from pardbg.watchdog.store.seen_ranks import doubted


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding, by the sign that tells most."""
    if not are_logs_alone(situation) or situation.own_failures:
        return
    for find in (_at_barrier, _broken_off, _at_store, _at_dispatch):
        finding = find(situation)
        if finding is not None:
            yield finding
            return


def _at_barrier(situation: Situation) -> Finding | None:
    """Rank 0 of a monitored barrier names who did not come."""
    claims = [(fact, event) for fact, event in situation.logs.of_type(BarrierFailed) if _is_global(fact, event)]
    named = [claim for claim in claims if not claim[1].is_hearsay]
    absent = sorted({rank for _, event in named for rank in event.absent if rank in situation.standings})
    if not absent:
        return None
    waited = {fact.rank for fact in situation.logs.facts if isinstance(fact.event, WAITS)}
    is_doubtful = any(rank in waited for rank in absent)
    moving = [rank for rank in absent if situation.host_motion(rank)]
    still = [rank for rank in absent if rank not in moving]
    causes = {situation.host_cause(rank) for rank in still or moving}
    subjects = tuple(situation.subject(rank, "did not reach the monitored barrier") for rank in still)
    victims = tuple(rank for rank in range(situation.view.world_size or 0) if rank not in absent)
    return Finding(
        kind=Kind.MISSING_PARTICIPANT if still else Kind.SLOW_PHASE,
        cause=causes.pop() if len(causes) == 1 else None,
        confidence=Confidence.SUGGESTED if is_doubtful else Confidence.SUPPORTED,
        culprits=() if is_doubtful else subjects,
        candidates=subjects if is_doubtful else (),
        waiting_for=tuple(situation.subject(rank, situation.host_motion(rank)) for rank in moving),
        victims=victims,
        claim=(
            f"{name_ranks(absent)} did not reach a monitored barrier in time"
            f"{', and their own logs show them waiting' if is_doubtful else ''}; {count_ranks(victims)} {wait_verb(victims)}"
        ),
        evidence=tuple(log_line(fact) for fact, _ in named[:MAX_LINES]),
        advice=(f"Look at what {name_ranks(absent)} did at that time: its stack, and the end of its log.",),
    )


def _broken_off(situation: Situation) -> Finding | None:
    """Ranks that had reached a monitored barrier name rank 0, which only coordinates: it breaks off when any is missing."""
    facts = [fact for fact, event in situation.logs.of_type(BarrierFailed) if event.is_hearsay]
    if not facts or not are_waits_hearsay(situation):
        return None
    ranks = sorted({fact.rank for fact in facts if fact.rank is not None})
    silent = [rank for rank in situation.standings if rank not in ranks]
    return Finding(
        kind=Kind.INSUFFICIENT_EVIDENCE,
        confidence=Confidence.SUGGESTED,
        candidates=tuple(situation.subject(rank, why) for rank, why in doubted(situation.view, silent).items()),
        victims=tuple(ranks),
        claim=(
            f"{name_ranks(ranks) if ranks else 'ranks'} had reached a monitored barrier that rank 0 broke off: it does so when "
            "any rank does not come, and only its own log says which"
        ),
        evidence=tuple(map(log_line, facts[:MAX_LINES])),
        advice=("Bring the log of rank 0 of that group: it names the ranks that did not come, or its own error.",),
    )


def are_waits_hearsay(situation: Situation) -> bool:
    """Whether all that logs tell of waits is who is missed, and by somebody who does not know it for certain."""
    waits = [fact.event for fact in situation.logs.facts if isinstance(fact.event, WAITS)]
    return all(isinstance(event, StallNamed) or (isinstance(event, BarrierFailed) and event.is_hearsay) for event in waits)


def _is_global(fact: LogFact, event: BarrierFailed) -> bool:
    """Whether its ranks are global ones, as far as the rank that signs the line tells."""
    signed = fact.event.rank
    return signed is None or event.group_rank is None or signed == event.group_rank


def _at_store(situation: Situation) -> Finding | None:
    """The first collective was never met: a symptom, which says nothing of why the other end did not come."""
    claims = [(fact, event) for fact, event in situation.logs.of_type(StoreTimeout) if fact.rank is not None]
    victims = {fact.rank for fact, _ in claims if fact.rank is not None}
    asked = {event.waits_for for _, event in claims if event.waits_for is not None}
    if not claims or not asked:
        return None
    roots = [rank for rank in sorted(asked) if rank not in victims and rank in situation.standings]
    busy = [rank for rank in roots if _is_busy(situation, rank)]
    facts = [fact for fact, _ in claims]
    if busy:
        return _waits_for(situation, busy, victims, facts, "have not met their first collective")
    seen = [rank for rank in roots if situation.main_frames(rank)]
    return Finding(
        kind=Kind.INIT_STUCK,
        cause=Cause.STORE_WAIT,
        confidence=Confidence.SUGGESTED,
        candidates=tuple(situation.subject(rank, _what_it_did(situation, rank)) for rank in roots),
        victims=tuple(sorted(victims)),
        claim=(
            f"{count_ranks(victims)} waited for the key that starts a communicator, which "
            f"{name_ranks(roots) if roots else 'the first rank of its group'} never set: their first collective was never met"
        ),
        evidence=(*(stack_line(situation, rank) for rank in seen), *map(log_line, facts[:MAX_LINES])),
        advice=(
            "Look at what that rank did at that time: loading, tokenizing, or a network interface that others cannot reach.",
        ),
    )


def _what_it_did(situation: Situation, rank: int) -> str:
    frames = situation.main_frames(rank)
    did = f"by its stack it is in {frames[0].name}" if frames else "what it did is not known"
    return f"had to set the key; {did}"


def _at_dispatch(situation: Situation) -> Finding | None:
    """Who prints the timeout of a dispatch waited; whoever is busy elsewhere is what it waited for."""
    facts = [fact for fact, _ in situation.logs.of_type(DispatchTimeout) if fact.rank is not None]
    victims = {fact.rank for fact in facts if fact.rank is not None}
    busy = [rank for rank in situation.standings if rank not in victims and _is_busy(situation, rank)]
    return _waits_for(situation, busy, victims, facts, "waited in an expert-parallel dispatch") if facts and busy else None


def _is_busy(situation: Situation, rank: int) -> bool:
    standing = situation.standings[rank]
    return standing.stance is Stance.HOST and not standing.is_still


def _waits_for(situation: Situation, busy: list[int], victims: set[int], facts: list[LogFact], did: str) -> Finding:
    causes = {situation.host_cause(rank) for rank in busy}
    doing = situation.standings[busy[0]].position
    words = f" is {doing.words}" if doing is not None else " is busy on the host"
    return Finding(
        kind=Kind.SLOW_PHASE,
        cause=causes.pop() if len(causes) == 1 else None,
        confidence=Confidence.SUGGESTED,
        waiting_for=tuple(situation.subject(rank, "is busy on the host by its own stack") for rank in busy),
        victims=tuple(sorted(victims)),
        claim=f"{name_ranks(sorted(victims))} {did}, while rank {busy[0]}{words}: the timeout is a symptom of that",
        evidence=(*(stack_line(situation, rank) for rank in busy[:MAX_LINES]), *map(log_line, facts[:MAX_LINES])),
        advice=("Let one rank do such work before the group is set up, or raise the timeout above the time it takes.",),
    )
