"""That ranks waited in vain, where, and that logs alone do not say for whom: the least that logs of watchdogs tell.

Candidates are ranks whose own log was read and does not show them waiting, or shows them behind; of whom nothing was read, that
is told, and they may be the one only where it is known that they are all.
"""

from pardbg.watchdog.correlators.log_words import MAX_LINES, log_line, name_log_group
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, name_ranks, wait_verb
from pardbg.watchdog.graph.log_facts import LogFact
from pardbg.watchdog.graph.log_places import LogPlace, overtaken, places_of, waiting_ranks
from pardbg.watchdog.model.log_event import BarrierFailed, CollectiveTimeout, GroupStatus, TrainingDone, WatchdogStuck
from pardbg.watchdog.model.names import Confidence, Kind
from pardbg.watchdog.model.report import CollectiveRef, Finding
from pardbg.watchdog.store.seen_ranks import doubted, read_ranks

BRING = ("Bring the flight-recorder dumps and the stacks of all ranks, also of those whose logs say nothing.",)
_MOST_PLACES = 4


def describe_unknown(situation: Situation, facts: list[LogFact]) -> Finding:
    """What is told by ``facts``, all waits that logs complain of."""
    places = places_of(situation.logs)
    waiting = waiting_ranks(situation.logs)
    behind = overtaken(situation.logs, places)
    candidates = _candidates(situation, waiting, behind)
    done = [fact for fact, _ in situation.logs.of_type(TrainingDone) if fact.rank in candidates]
    first = next((place.wait for place in places if place.wait is not None), None)
    return Finding(
        kind=Kind.INSUFFICIENT_EVIDENCE,
        confidence=Confidence.SUGGESTED,
        candidates=tuple(situation.subject(rank, why) for rank, why in sorted(candidates.items())),
        victims=tuple(rank for rank in sorted(waiting) if rank not in candidates),
        collective=collective_of(first) if first is not None else None,
        claim=f"{_where(places, waiting)}, and logs alone do not say for whom{_further(behind, _unread(situation, waiting))}",
        evidence=tuple(map(log_line, [*done[:2], *facts[:MAX_LINES]])),
        advice=BRING,
    )


def collective_of(wait: CollectiveTimeout) -> CollectiveRef:
    """The operation of a wait."""
    sizes = ((wait.numel_in,),) if wait.numel_in is not None else ()
    return CollectiveRef(op=wait.op, seq=wait.seq, sizes=sizes, dtype=None, src=None, dst=None)


def _candidates(situation: Situation, waiting: frozenset[int], behind: dict[int, LogPlace]) -> dict[int, str]:
    named = {rank for fact, event in situation.logs.of_type(BarrierFailed) for rank in event.absent if fact.rank == 0}
    silent = (rank for rank in situation.standings if rank not in waiting)
    candidates = doubted(situation.view, silent)
    candidates |= {rank: why for rank, why in _idle(situation).items() if rank in candidates}
    candidates |= {
        fact.rank: "its log says that the training is over, while others wait"
        for fact, _ in situation.logs.of_type(TrainingDone)
        if fact.rank in candidates
    }
    doubtful = situation.doubtful_failures
    candidates |= {rank: f"its log holds: {doubtful[rank].text}" for rank in doubtful.keys() & candidates.keys()}
    candidates |= {rank: f"it has not finished {_operation(place)}, which others have" for rank, place in behind.items()}
    candidates |= dict.fromkeys(_fewest_pending(situation), "has the fewest operations to look after: it is behind")
    return candidates | dict.fromkeys(named & situation.standings.keys(), "did not reach a monitored barrier")


def _idle(situation: Situation) -> dict[int, str]:
    """The ranks that had finished all they issued in a group, by their own status."""
    return {
        fact.rank: f"it had finished all that it issued in {name_log_group(status.group)}"
        for fact, status in situation.logs.of_type(GroupStatus)
        if fact.rank is not None and not status.is_open
    }


def _fewest_pending(situation: Situation) -> list[int]:
    """The one rank whose watchdog had fewer operations to look after than all others, where several say how many."""
    pending = {fact.rank: event.pending for fact, event in situation.logs.of_type(WatchdogStuck) if event.pending is not None}
    known = {rank: count for rank, count in pending.items() if rank is not None}
    fewest = [rank for rank, count in known.items() if count == min(known.values())]
    return fewest if len(known) > 2 and len(fewest) == 1 else []


def _unread(situation: Situation, waiting: frozenset[int]) -> list[int]:
    read = read_ranks(situation.view)
    return [rank for rank in situation.standings if rank not in read and rank not in waiting]


def _where(places: tuple[LogPlace, ...], waiting: frozenset[int]) -> str:
    """``3 ranks wait in all_reduce 808 of the default_pg group``; several places by their ranks."""
    rest = sorted(waiting - {rank for place in places for rank in place.ranks})
    if len(places) == 1 and places[0].count and not rest:
        return f"{places[0].count} rank{_s(places[0].count)} {_verb(places[0].count)} in {_place(places[0])}"
    if not places:
        return f"{count_ranks(rest)} {wait_verb(rest)}" if rest else "ranks wait"
    told = [_at(place) for place in places[:_MOST_PLACES]]
    more = len(places) - _MOST_PLACES
    told += [f"others in {more} further operation{_s(more)}"] if more > 0 else []
    told += [f"{name_ranks(rest)} {wait_verb(rest)} somewhere"] if rest else []
    return "; ".join(told)


def _at(place: LogPlace) -> str:
    """By their numbers in the world, and of those that sign nothing by the ones in their group."""
    if place.ranks:
        others = f" and {len(place.members)} more" if place.members else ""
        return f"{name_ranks(place.ranks)}{others} {_verb(place.count)} in {_place(place)}"
    who = (
        f"{name_ranks(place.members)} of {name_log_group(place.group)} {_verb(place.count)}" if place.members else "ranks wait"
    )
    return f"{who} in {_operation(place)}"


def _place(place: LogPlace) -> str:
    return f"{_operation(place)} of {name_log_group(place.group)}"


def _operation(place: LogPlace) -> str:
    """By its number, where watchdogs tell one."""
    return f"{place.op or 'operation'} {place.seq}" if place.seq is not None else place.op


def _further(behind: dict[int, LogPlace], unread: list[int]) -> str:
    told = [f"; {name_ranks(sorted(behind))} had not finished what others had"] if behind else []
    return "".join([*told, *([f"; nothing was read of {name_ranks(unread)}"] if unread else [])])


def _verb(count: int) -> str:
    return "waits" if count == 1 else "wait"


def _s(count: int) -> str:
    return "" if count == 1 else "s"
