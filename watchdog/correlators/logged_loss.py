"""Logs in which ranks only say that they lost a peer or the store: consequences, whose cause is in a log that says nothing.

Nobody is accused. Whoever says nothing may have gone first, and so may a rank whose log was not brought.
"""

from collections.abc import Iterable

from pardbg.watchdog.correlators.log_words import MAX_LINES, log_line, sees_waits
from pardbg.watchdog.correlators.reported import reported_only
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, name_ranks
from pardbg.watchdog.graph.log_facts import LogFact
from pardbg.watchdog.graph.standing import Stance
from pardbg.watchdog.model.log_event import LostSign, PeerLost, TrainingDone
from pardbg.watchdog.model.names import CollectorName, Confidence, Kind
from pardbg.watchdog.model.report import EvidenceLine, Finding
from pardbg.watchdog.store.seen_ranks import doubted

MAX_NAMED = 16
_OUT_OF_SIGHT = frozenset({Stance.UNSEEN, Stance.ENDED})


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding where nothing better is known; of ranks that waited in vain `logged_wait` speaks."""
    view = situation.view
    if sees_waits(situation) or _is_explained(situation):
        return
    facts = [fact for fact, event in situation.logs.of_type(PeerLost) if event.sign is not LostSign.TERMINATED]
    raised = {rank: loss for rank, loss in view.losses.items() if rank in situation.standings}
    ranks = {*raised, *(fact.rank for fact in facts if fact.rank is not None)}
    if (facts or raised) and all(situation.stance(rank) in _OUT_OF_SIGHT for rank in ranks):
        yield _describe(situation, facts, sorted(ranks))


def _is_explained(situation: Situation) -> bool:
    """Whether the job has trained to its end, so that connections close, or a log or a launcher tells more."""
    view, logs = situation.view, situation.logs
    has_returned = bool(view.processes) and all(process.exit_code == 0 for process in view.processes.values())
    tells_more = logs.tells_of_waits or bool(logs.of_type(TrainingDone))
    has_failed = bool(situation.own_failures or situation.doubtful_failures)
    return has_returned or tells_more or has_failed or bool(reported_only(situation))


def _describe(situation: Situation, facts: list[LogFact], ranks: list[int]) -> Finding:
    silent = [rank for rank in situation.standings if rank not in ranks]
    doubts = doubted(situation.view, silent) if ranks else {}
    who = count_ranks(ranks) if ranks else "ranks"
    is_named = 0 < len(doubts) <= MAX_NAMED
    may_be = f"; it may be {name_ranks(list(doubts))}, of which nothing that was read tells" if is_named else ""
    return Finding(
        kind=Kind.INSUFFICIENT_EVIDENCE,
        confidence=Confidence.SUGGESTED,
        candidates=tuple(situation.subject(rank, why) for rank, why in doubts.items()),
        victims=tuple(ranks),
        claim=f"{who} lost a peer, or waited for one in vain, and nothing that was logged says who went first{may_be}",
        evidence=tuple(_lines(situation, facts, ranks))[:MAX_LINES],
        advice=("Bring the whole logs of the ranks that say nothing, and of the launcher of each host.",),
    )


def _lines(situation: Situation, facts: list[LogFact], ranks: list[int]) -> Iterable[EvidenceLine]:
    """What each rank says of it, once."""
    yield from map(log_line, facts)
    told = {fact.rank for fact in facts}
    for rank in ranks:
        if rank not in told and rank in situation.view.losses:
            yield situation.view.line(CollectorName.RANK_LOG, rank, situation.view.losses[rank].exception)
