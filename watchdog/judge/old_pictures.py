"""Dumps of different moments: what the older ones do not say, and what follows for the whole.

Between the oldest dump and the newest the job moved. Where others are seen to wait for ranks whose dumps are old, it may be
moving still: that is no hang.
"""

from collections.abc import Iterator

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import name_group, name_ranks
from pardbg.watchdog.model.names import AbsenceReason, CollectorName, Kind
from pardbg.watchdog.model.report import Finding, Unknown


def old_pictures(situation: Situation) -> Iterator[Unknown]:
    """What the dumps that are behind leave unsaid, rank by rank."""
    progress = situation.progress
    for rank, index in sorted(progress.behind.items()):
        group = situation.groups.groups[index]
        detail = (
            f"its dump is older than what those of others tell: a member of the {name_group(group)} has completed "
            f"collective {progress.proven[index]}, which nobody can without this rank"
        )
        yield Unknown(
            rank=rank,
            host=situation.view.host(rank),
            collector=CollectorName.FLIGHT_RECORDER,
            reason=AbsenceReason.SKIPPED,
            detail=detail,
        )


def doubt_of_moments(situation: Situation, verdict: Finding | None) -> str:
    """Why dumps of different moments do not tell whether the job hangs; empty if nothing hangs on the older ones."""
    behind = situation.progress.behind
    if verdict is None:
        unsure = [rank for rank in behind if not situation.is_seen(rank)]
    else:
        named = [subject.rank for subject in verdict.candidates]
        is_about_old = verdict.kind is Kind.INSUFFICIENT_EVIDENCE and bool(named) and all(rank in behind for rank in named)
        unsure = [rank for rank in named if rank is not None] if is_about_old else []
    if not unsure:
        return ""
    dumps = "the dump of" if len(unsure) == 1 else "the dumps of"
    return (
        f"{dumps} {name_ranks(unsure)} {'is' if len(unsure) == 1 else 'are'} older than the others, and the job moved in "
        "between: take those of all ranks at one moment, and again some seconds later"
    )
