"""Replicas that should be equal and are not, or that should be fed different data and are fed the same.

DistributedDataParallel promises that the replicas of a module are equal, bit by bit, whenever a pass begins that it will
synchronise, and it says which ranks hold them: nothing here is a guess about a layout. Who is to blame:

* Weights differ. Of three and more replicas a clear minority, as in a desync; else all sides are candidates. If sides share no
  host, their machines may have begun to compute otherwise: that is weaker, but not where they were unequal from the start, when
  nothing had been computed.
* The same data. Whichever of two ranks reads what is the other's, both read the same: nobody can tell, and they are candidates.
  Ranks of a smaller process group may be meant to: they share the work on a batch, as in tensor parallelism.
"""

from collections.abc import Iterable, Iterator

from pardbg.watchdog.correlators.replica_words import (
    advise_alike,
    advise_parted,
    alike_lines,
    claim_alike,
    claim_parted,
    parted_lines,
    why_parted,
)
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.graph.replicas import Alike, Classes, Parting, Replicas, find_replicas
from pardbg.watchdog.model.names import Cause, Confidence, Kind, Scope
from pardbg.watchdog.model.report import Finding, GroupRef, Subject

MOST_NAMED = 64
"""Candidates that are named one by one."""


def correlate(situation: Situation) -> Iterable[Finding]:
    """For each module at most one finding of its weights; one for each set of ranks that are fed alike."""
    seen = {rank: beat.replica for rank, beat in situation.view.heartbeats.items() if beat.replica is not None}
    for replicas in find_replicas(seen):
        parting = replicas.parting()
        if parting is not None:
            yield _describe_parting(situation, replicas, parting)
        for alike in replicas.fed_alike():
            if not _is_meant(situation, replicas, alike):
                yield _describe_alike(situation, replicas, alike)


def _meet_on_a_host(situation: Situation, sides: Classes) -> bool:
    """Whether two ranks of different sides compute on one host, and so alike."""
    hosts = [{situation.view.host(rank) for rank in ranks} - {None} for ranks in sides]
    return sum(map(len, hosts)) > len(set[str | None]().union(*hosts))


def _is_meant(situation: Situation, replicas: Replicas, alike: Alike) -> bool:
    """Whether they may share the work on a batch: as members of a smaller group, or of one that nobody has seen."""
    ranks, size = {*alike.ranks}, replicas.any_seen.size
    if len(ranks) == size:
        return False
    smaller = (group for group in situation.groups.groups if len(group.ranks) < size)
    return not ranks <= situation.view.recordings.keys() or any(ranks <= {*group.ranks} for group in smaller)


def _describe_parting(situation: Situation, replicas: Replicas, parting: Parting) -> Finding:
    is_sure = parting.is_from_start or _meet_on_a_host(situation, parting.sides)
    subjects = [situation.subject(rank, why_parted(ranks, parting, replicas)) for ranks in parting.sides for rank in ranks]
    return Finding(
        kind=Kind.REPLICA_DIVERGENCE,
        confidence=Confidence.SUPPORTED if is_sure else Confidence.SUGGESTED,
        culprits=tuple(subject for subject in subjects if subject.rank in parting.minority),
        candidates=() if parting.minority else _few(replicas, subjects),
        group=_group(situation, replicas),
        since_step=parting.since_step,
        claim=claim_parted(replicas, parting),
        evidence=tuple(parted_lines(situation, replicas, parting)),
        advice=tuple(advise_parted(situation, replicas, parting)),
    )


def _describe_alike(situation: Situation, replicas: Replicas, alike: Alike) -> Finding:
    others = "its batches are those of the others that are named"
    subjects = [situation.subject(rank, others) for rank in alike.ranks]
    return Finding(
        kind=Kind.REPLICA_DIVERGENCE,
        cause=Cause.SAME_DATA,
        confidence=Confidence.SUPPORTED,
        candidates=_few(replicas, subjects),
        group=_group(situation, replicas),
        since_step=alike.since_step,
        claim=claim_alike(replicas, alike),
        evidence=tuple(alike_lines(situation, replicas, alike)),
        advice=tuple(advise_alike(replicas)),
    )


def _few(replicas: Replicas, subjects: list[Subject]) -> tuple[Subject, ...]:
    if len(subjects) <= MOST_NAMED:
        return tuple(subjects)
    ranks = tuple(sorted(subject.rank for subject in subjects if subject.rank is not None))
    return (Subject(scope=Scope.GROUP, ranks=ranks, why=f"{len(ranks)} of its {replicas.any_seen.size} replicas"),)


def _group(situation: Situation, replicas: Replicas) -> GroupRef | None:
    """The process group of the module, where one was recorded that has just these members."""
    fitting: Iterator[GroupRef] = (
        situation.group_ref(group) for group in situation.groups.groups if tuple(sorted(group.ranks)) == replicas.ranks
    )
    return next(fitting, None) if not replicas.unseen_count else None
