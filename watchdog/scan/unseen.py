"""A job of which nothing could be seen: whoever knows where it runs, or all its nodes, did not answer. Undetermined."""

import time
from collections.abc import Iterator, Mapping

from pardbg.collectors.live.moment import now_rfc3339
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Absence, Evidence, JobDescription
from pardbg.watchdog.model.names import CollectorName, JobSource
from pardbg.watchdog.scan.scan import Scanned, Settings
from pardbg.watchdog.store.view import EvidenceView


def tell_unseen(job: str, source: JobSource, why: str, absences: Mapping[str, Absence], settings: Settings) -> Scanned:
    """The answer.

    Args:
        job: as the user named it.
        source: whose job it is.
        why: nothing was seen, in one sentence.
        absences: what was asked and did not answer, by host; empty for no host in particular.
        settings: when it began.
    """
    evidence = (_evidence("", JobDescription(job=job, world_size=None)), *_absences(absences))
    circumstances = Circumstances(
        decided_at=now_rfc3339(),
        took_s=round(time.monotonic() - settings.began_s, 3) if settings.began_s is not None else 0.0,
        source=source,
        sampled_at=(),
        is_void=why,
    )
    return Scanned(judge(EvidenceView.of(evidence), circumstances), evidence)


def _absences(absences: Mapping[str, Absence]) -> Iterator[Evidence]:
    for host, absence in absences.items():
        yield _evidence(host, absence)


def _evidence(host: str, observation: JobDescription | Absence) -> Evidence:
    return Evidence(source=CollectorName.HOST, rank=None, host=host or None, observation=observation, origin=host)
