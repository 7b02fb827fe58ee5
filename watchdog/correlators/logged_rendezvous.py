"""Ranks that wait for others at the store before any group works, as logs tell: who has not come, where that follows.

It follows where as many ranks say that they wait as have joined: the others of the world have not. A store that counts more
than the world has is one that an earlier start, or another job, has left its joins in.
"""

from collections.abc import Iterable

from pardbg.watchdog.correlators.log_words import MAX_LINES, are_logs_alone, log_line
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, name_ranks, wait_verb
from pardbg.watchdog.graph.log_facts import SET_UP_DONE, LogFact
from pardbg.watchdog.model.log_event import (
    CollectiveTimeout,
    CommunicatorStep,
    GroupStatus,
    RendezvousFailed,
    StoreBarrier,
    TrainingDone,
    WatchdogStuck,
)
from pardbg.watchdog.model.names import Cause, Confidence, Kind
from pardbg.watchdog.model.report import Finding

_WORKED = (CollectiveTimeout, GroupStatus, WatchdogStuck, TrainingDone)
_FIRST_KEY = "store_based_barrier_key:1"  # of the default group, in the torch releases that print these lines by default
_START_AFRESH = "Start it with a port or a file of the store that nothing used before, and see that no earlier job still runs."
_LOOK_AT_ABSENT = "Look whether {who} started: the end of its log, its host, and whether it has the same address of the store."
_ASK_ALL = "See that all processes start (one a rank, the same world size), and reach the address of the store from their host."

_Wait = tuple[LogFact, StoreBarrier]


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding."""
    if not are_logs_alone(situation) or situation.own_failures or _has_worked(situation):
        return
    waits = situation.logs.of_type(StoreBarrier)
    failed = situation.logs.of_type(RendezvousFailed)
    if waits:
        yield _at_barrier(situation, waits)
    elif failed:
        yield _at_store(failed)


def _has_worked(situation: Situation) -> bool:
    """Whether any group was set up: then whatever fails at the store is no start."""
    is_set_up = any(event.step == SET_UP_DONE for _, event in situation.logs.of_type(CommunicatorStep))
    return is_set_up or any(isinstance(fact.event, _WORKED) for fact in situation.logs.facts)


def _at_barrier(situation: Situation, waits: list[_Wait]) -> Finding:
    first = max((event for _, event in waits), key=lambda event: event.joined)
    there = [(fact, event) for fact, event in waits if event.key == first.key]
    ranks = tuple(sorted({event.rank for _, event in there if event.rank is not None}))
    absent = _absent(first, there)
    is_sure = first.key == _FIRST_KEY
    who = name_ranks(absent) if absent else ""
    subjects = tuple(situation.subject(rank, "has not come to the store's barrier") for rank in absent)
    return Finding(
        kind=Kind.INIT_STUCK,
        cause=Cause.STORE_WAIT,
        confidence=Confidence.SUPPORTED if any(event.has_given_up for _, event in there) else Confidence.SUGGESTED,
        culprits=subjects if is_sure else (),
        candidates=() if is_sure else subjects,
        victims=ranks,
        claim=f"{count_ranks(ranks)} {wait_verb(ranks)} at the store for all ranks of a group to come: {_count(first, who)}",
        evidence=tuple(log_line(fact) for fact, _ in there[:MAX_LINES]),
        advice=(_advice(first, who),),
    )


def _absent(first: StoreBarrier, there: list[_Wait]) -> tuple[int, ...]:
    """The ranks that have not come: whoever does not say that it waits, where all that have joined say so with one count."""
    waiting = {event.rank for _, event in there if event.joined == first.joined}
    is_whole = len(waiting) == first.joined < first.world_size
    is_within = all(rank is not None and rank < first.world_size for rank in waiting)
    return tuple(rank for rank in range(first.world_size) if rank not in waiting) if is_whole and is_within else ()


def _count(first: StoreBarrier, who: str) -> str:
    told = f"{first.joined} of {first.world_size} have joined"
    if first.joined > first.world_size:
        return (
            f"{first.joined} have joined where {first.world_size} are expected, so that nobody is missing: the store holds "
            "what an earlier start or another job has left"
        )
    if not who:
        return f"{told}, and nothing says who has not"
    return f"{told}; {who} {'has' if who.startswith('rank ') else 'have'} not come"


def _advice(first: StoreBarrier, who: str) -> str:
    if first.joined > first.world_size:
        return _START_AFRESH
    return _LOOK_AT_ABSENT.format(who=who) if who else _ASK_ALL


def _at_store(failed: list[tuple[LogFact, RendezvousFailed]]) -> Finding:
    counted = [event for _, event in failed if event.expected is not None]
    addresses = sorted({event.address for _, event in failed if event.address})
    told = [f"only {event.joined} of {event.expected} processes came to the store in time" for event in counted[:1]]
    told += [f"the store at {' and '.join(addresses[:2])} could not be reached" for _ in addresses[:1]]
    return Finding(
        kind=Kind.INIT_STUCK,
        cause=Cause.STORE_WAIT,
        confidence=Confidence.SUPPORTED,
        claim=f"{'; '.join(told)}, and nothing says who did not come, or why",
        evidence=tuple(log_line(fact) for fact, _ in failed[:MAX_LINES]),
        advice=(_ASK_ALL,),
    )
