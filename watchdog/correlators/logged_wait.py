"""Ranks that waited in vain, by logs alone, and nothing that names a cause: who is behind, who is silent, what was over.

A watchdog whose heartbeat stood still is never a cause; who prints a timeout is a victim until more is known.
"""

from collections.abc import Iterable

from pardbg.watchdog.correlators.log_words import MAX_LINES, are_logs_alone, log_line, name_log_group
from pardbg.watchdog.correlators.logged_absence import are_waits_hearsay
from pardbg.watchdog.correlators.logged_unknown import BRING, collective_of, describe_unknown
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, name_ranks, stack_line
from pardbg.watchdog.graph.log_facts import LogFact
from pardbg.watchdog.graph.log_waits import find_behind, find_split
from pardbg.watchdog.graph.standing import Stance
from pardbg.watchdog.model.log_event import (
    WAITS,
    CollectiveTimeout,
    GroupName,
    GroupStatus,
    LogEvent,
    TrainingDone,
    WatchdogStuck,
)
from pardbg.watchdog.model.names import Confidence, Kind
from pardbg.watchdog.model.report import Finding
from pardbg.watchdog.store.seen_ranks import told_world_size


def correlate(situation: Situation) -> Iterable[Finding]:
    """The best that can be said, and always that it is not enough; the judge drops the latter beside anything better."""
    facts = [fact for fact in situation.logs.facts if isinstance(fact.event, WAITS)]
    if not facts or not are_logs_alone(situation) or _has_returned(situation) or are_waits_hearsay(situation):
        return
    done = _done(situation, facts)
    if done:
        yield _torn_down(situation, done)
        return
    for group, waits in situation.log_waits.items():
        if find_split(group, waits) is None:  # `logged_desync` speaks of it
            yield from _absent(situation, group, waits)
    yield describe_unknown(situation, facts)


def _has_returned(situation: Situation) -> bool:
    """Whether the job has ended in peace, whatever its logs grumble."""
    processes = situation.view.processes
    return bool(processes) and all(process.exit_code == 0 for process in processes.values())


def _done(situation: Situation, waits: list[LogFact]) -> list[LogFact]:
    """The waits, if all began after a word that the training is over: it counts where work neither follows it nor waits.

    Whoever says so and is not among those who stand still has left the others in the lurch, or works on alone.
    """
    said = [fact for fact, event in situation.logs.of_type(TrainingDone) if not event.is_passed]
    late = [fact for fact in waits if any(_is_after(situation, fact, word) for word in said)]
    speakers, still = ({fact.rank for fact in facts} - {None} for facts in (said, waits))
    if not speakers <= still or not all(_may_be_leaving(fact.event) for fact in waits):
        return []
    have_all_come = told_world_size(situation.view) is not None and speakers >= situation.standings.keys()
    if not have_all_come and any(_is_for_others(fact.event) for fact in waits):
        return []  # who has not come to the last barrier may be the one
    return late if len(late) == len(waits) else []


def _may_be_leaving(event: LogEvent) -> bool:
    """Whether a wait can be one of a process that ends: in a barrier, or in nothing that others would have to come to.

    NCCL's barrier is an all_reduce of one element.
    """
    if isinstance(event, CollectiveTimeout):
        return event.op == "barrier" or (event.op == "all_reduce" and event.numel_in == 1)
    return isinstance(event, GroupStatus | WatchdogStuck)


def _is_for_others(event: LogEvent) -> bool:
    return isinstance(event, CollectiveTimeout) or (isinstance(event, GroupStatus) and event.is_open)


def _is_after(situation: Situation, later: LogFact, earlier: LogFact) -> bool:
    """By their times, else by their places in one log."""
    if later.event.at_ns is not None and earlier.event.at_ns is not None:
        started_ns = later.event.at_ns
        if isinstance(later.event, CollectiveTimeout):
            started_ns -= (later.event.ran_ms or 0) * 1_000_000
        return started_ns >= earlier.event.at_ns
    facts = situation.logs.facts
    return later.origin == earlier.origin and facts.index(later) > facts.index(earlier)


def _torn_down(situation: Situation, facts: list[LogFact]) -> Finding:
    ranks = sorted({fact.rank for fact in facts if fact.rank is not None})
    done = [fact for fact, _ in situation.logs.of_type(TrainingDone)]
    return Finding(
        kind=Kind.TEARDOWN_STUCK,
        confidence=Confidence.SUPPORTED,
        culprits=tuple(situation.subject(rank, "does not leave after the training was over") for rank in ranks),
        claim=f"the training was over when {name_ranks(ranks) if ranks else 'ranks'} stood still: they do not leave",
        evidence=tuple(map(log_line, [*done[:2], *facts[:MAX_LINES]])),
        advice=("The results are complete. Call destroy_process_group on all ranks before they return.",),
    )


def _absent(situation: Situation, group: GroupName, waits: dict[int, CollectiveTimeout]) -> Iterable[Finding]:
    """A rank that its own stack shows elsewhere, or that had issued nothing more by its own status."""
    seqs = {wait.number for wait in waits.values()}
    elsewhere = [rank for rank, standing in situation.standings.items() if standing.stance is Stance.HOST and rank not in waits]
    if group.is_world and elsewhere and len(seqs) == 1:
        yield _missing(situation, group, waits, elsewhere, is_seen=True, is_clear=True)
        return
    behind = [rank for rank in find_behind(situation.logs, group, waits) if rank not in waits]
    if behind:
        busy = {fact.rank for fact, _ in situation.logs.of_type(CollectiveTimeout)}
        is_clear = len(seqs) == 1 and busy == waits.keys() and len(waits) > 2 * len(behind)
        yield _missing(situation, group, waits, behind, is_seen=False, is_clear=is_clear)


def _missing(  # noqa: PLR0913 - what is known of them
    situation: Situation,
    group: GroupName,
    waits: dict[int, CollectiveTimeout],
    ranks: list[int],
    *,
    is_seen: bool,
    is_clear: bool,
) -> Finding:
    """A stack shows who is missing, as does a rank's own count where all others wait in one operation; else it suggests it."""
    moving = [rank for rank in ranks if situation.host_motion(rank)]
    still = [rank for rank in ranks if rank not in moving]
    causes = {situation.host_cause(rank) for rank in still or moving}
    first = min(waits.values(), key=lambda wait: wait.number)
    subjects = tuple(situation.subject(rank, f"has not issued {first.op} {first.seq}") for rank in still)
    facts = [fact for fact, event in situation.logs.of_type(CollectiveTimeout) if event.group == group]
    victims, source = tuple(sorted(waits)), _own(ranks, "stack" if is_seen else "watchdog")
    told = [] if is_seen else [fact for fact, event in situation.logs.of_type(GroupStatus) if fact.rank in ranks]
    return Finding(
        kind=Kind.MISSING_PARTICIPANT if still else Kind.SLOW_PHASE,
        cause=causes.pop() if len(causes) == 1 else None,
        confidence=Confidence.SUPPORTED if is_clear else Confidence.SUGGESTED,
        culprits=subjects if is_clear else (),
        candidates=() if is_clear else subjects,
        waiting_for=tuple(situation.subject(rank, situation.host_motion(rank)) for rank in moving),
        victims=victims,
        collective=collective_of(first),
        claim=(
            f"{name_ranks(ranks)} had not issued {first.op} {first.seq} of {name_log_group(group)}, by {source}; "
            f"{count_ranks(victims)} waited in it until it timed out"
        ),
        evidence=(
            *(stack_line(situation, rank) for rank in ranks[:MAX_LINES] if is_seen),
            *map(log_line, [*told[:MAX_LINES], *facts[:MAX_LINES]]),
        ),
        advice=BRING,
    )


def _own(ranks: list[int], source: str) -> str:
    return f"its own {source}" if len(ranks) == 1 else f"their own {source}s"
