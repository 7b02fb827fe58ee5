"""The scheduler ended the job: preemption and failed nodes come before anything that ranks did meanwhile."""

from collections.abc import Iterable

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.model.evidence import SchedulerEnding
from pardbg.watchdog.model.names import Confidence, Kind
from pardbg.watchdog.model.report import EvidenceLine, Finding, Subject


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding. A time limit and a cancelled job are no fault: the report's note tells of them."""
    item = situation.view.scheduler_ending
    if item is None or not isinstance(item.observation, SchedulerEnding):
        return
    ending = item.observation
    if not ending.is_from_outside or ending.cause is None:
        return
    line = EvidenceLine(
        source=item.source, rank=None, host=None, at=ending.at or item.observed_at, text=ending.claim, origin=item.origin
    )
    yield Finding(
        kind=Kind.DEAD_RANK,
        cause=ending.cause,
        confidence=Confidence.SUPPORTED if ending.is_hearsay else Confidence.ESTABLISHED,
        culprits=tuple(Subject.of_host(host, "the scheduler says that it failed") for host in ending.hosts),
        claim=ending.claim,
        evidence=(line,),
        advice=ending.advice,
    )
