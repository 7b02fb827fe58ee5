"""A job of which a scheduler says that it is gone: the scheduler's word and what ranks have left here, before one judge."""

import time
from dataclasses import dataclass

from pardbg.collectors.jobs.query import JobQuery
from pardbg.collectors.live.moment import now_rfc3339
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence, JobDescription
from pardbg.watchdog.model.names import CollectorName, JobSource
from pardbg.watchdog.scan.ended import scan_ended
from pardbg.watchdog.scan.scan import Progress, Scanned, Settings
from pardbg.watchdog.store.view import EvidenceView


@dataclass(frozen=True)
class Told:
    """What the scheduler says.

    Attributes:
        job: the job, as people write it.
        source: whose job it is.
        origin: the commands that said so.
        evidence: of its end, and whatever else was found.
        notes: for the report.
        began_s: when the asking began, on the monotonic clock.
    """

    job: str
    source: JobSource
    origin: str
    evidence: tuple[Evidence, ...]
    notes: tuple[str, ...]
    began_s: float


def scan_what_is_left(told: Told, query: JobQuery, settings: Settings, progress: Progress) -> Scanned:
    """Diagnoses it: the scheduler's word comes before anything about ranks."""
    left = scan_ended(query, settings, progress)
    described = JobDescription(job=told.job, world_size=None)
    alone = Evidence(source=CollectorName.HOST, rank=None, observation=described, origin=told.origin)
    evidence = (*(left.evidence if left is not None else (alone,)), *told.evidence)
    circumstances = Circumstances(
        decided_at=now_rfc3339(),
        took_s=round(time.monotonic() - told.began_s, 3),
        source=told.source,
        sampled_at=left.report.sampled_at if left is not None else (),
        notes=(*told.notes, *(left.report.notes if left is not None else ())),
        rules=settings.rules,
    )
    return Scanned(judge(EvidenceView.of(evidence), circumstances), evidence)
