"""Flight recorders that say nothing, although nothing failed: off, damaged, cut short, or never there."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from pardbg.watchdog.model.evidence import Absence, Evidence, FlightRecording
from pardbg.watchdog.model.members import MAX_WORLD_SIZE
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.recording import Recording

if TYPE_CHECKING:
    from pardbg.watchdog.store.view import EvidenceView

OF_EARLIER_RUN = "its newest operation is far older than all that the other dumps hold: it seems to be of an earlier run"
MAX_LOST_NAMED = 4096  # ranks without a dump that are named one by one


def silent_recorders(view: "EvidenceView") -> Iterable[Evidence]:
    """Absences for recorders that are off or damaged, for dumps of nobody, and for ranks without one."""
    explained = {
        item.rank
        for item in view.evidence
        if isinstance(item.observation, Absence) and item.source is CollectorName.FLIGHT_RECORDER
    }
    for item in view.evidence:
        seen = item.observation
        if isinstance(seen, FlightRecording) and item.rank is None:
            whose = f"{item.origin}: its name does not tell whose dump it is: let it end in the rank"
            yield _absent(None, AbsenceReason.SKIPPED, whose, item.origin)
        if not isinstance(seen, FlightRecording) or item.rank is None or item.rank in explained:
            continue
        if not seen.recording.is_switched_on:
            explained.add(item.rank)
            yield _absent(item.rank, *_why_silent(seen.recording), item.origin)
        elif item.rank in view.stale_recorders:
            explained.add(item.rank)
            yield _absent(item.rank, AbsenceReason.SKIPPED, OF_EARLIER_RUN, item.origin)
        elif seen.recording.damage:
            yield _absent(item.rank, AbsenceReason.UNREADABLE, seen.recording.damage, item.origin)
        elif seen.recording.summary is not None and seen.recording.summary.cut:
            told = f"its digest would have been too large without leaving out {seen.recording.summary.cut}"
            yield _absent(item.rank, AbsenceReason.SKIPPED, told, item.origin)
    if not view.is_of_routing_alone and not view.is_of_traces_alone:  # else nobody has asked recorders
        yield from _lost(view, explained)


def _lost(view: "EvidenceView", explained: Collection[int | None]) -> Iterable[Evidence]:
    """The ranks of whom there is no dump."""
    lost = [rank for rank in range(view.world_size or 0) if rank not in view.recordings and rank not in explained]
    for rank in lost[:MAX_LOST_NAMED]:
        yield _absent(rank, AbsenceReason.LOST, "there is no flight-recorder dump of this rank", "")
    if len(lost) > MAX_LOST_NAMED:
        more = f"there is no flight-recorder dump of {len(lost) - MAX_LOST_NAMED} more ranks"
        yield _absent(None, AbsenceReason.LOST, more, "")
    if view.job.world_size and view.job.world_size > MAX_WORLD_SIZE:
        told = f"job.json tells of {view.job.world_size} ranks, more than any job has: not believed"
        yield _absent(None, AbsenceReason.UNREADABLE, told, view.job_origin)


def _why_silent(recording: Recording) -> tuple[AbsenceReason, str]:
    if recording.damage:
        return AbsenceReason.UNREADABLE, recording.damage
    if recording.configs:
        return AbsenceReason.EMPTY, "the dump holds no operation and no counters: nothing says whether anything is outstanding"
    return AbsenceReason.SWITCHED_OFF, "the flight recorder of this rank was off (TORCH_FR_BUFFER_SIZE=0)"


def _absent(rank: int | None, reason: AbsenceReason, detail: str, origin: str) -> Evidence:
    return Evidence(
        source=CollectorName.FLIGHT_RECORDER,
        rank=rank,
        observation=Absence(reason=reason, detail=detail),
        origin=origin,
    )
