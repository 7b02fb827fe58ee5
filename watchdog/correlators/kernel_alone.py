"""Kernel logs alone were brought: what they tell of GPUs and of memory, though not whether any job waits for that.

Errors that the driver's next start has cleared do not count. A clean-up error that names an earlier one counts as that one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pardbg.watchdog.correlators.dead_rank import SAVE_MEMORY
from pardbg.watchdog.correlators.device_at_fault import ADVICE
from pardbg.watchdog.correlators.kernel_words import as_rfc3339, kill_words, xid_words
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.graph.device_faults import SEVERITY, cause_of_xid, name_xid
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.kernel import KernelLog, Moment, XidEvent
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, Kind, Scope
from pardbg.watchdog.model.report import Device, EvidenceLine, Finding, Subject
from pardbg.watchdog.store.kernel_events import RANK_NAMES

MAX_TOLD, MAX_LINES = 4, 8
_WORST_FIRST = (*SEVERITY[:-1], Cause.OOM_KILLED, Cause.XID)  # an Xid of no other kind is mostly the program's own


@dataclass(frozen=True)
class _Told:
    """One line of a log, of whom it speaks, and what it means."""

    cause: Cause
    subject: Subject
    text: str
    when: Moment
    log: Evidence

    @property
    def line(self) -> EvidenceLine:
        at = as_rfc3339(self.when) or self.log.observed_at
        host, origin = self.log.host, self.log.origin
        return EvidenceLine(source=CollectorName.KERNEL_LOG, rank=None, host=host, at=at, text=self.text, origin=origin)


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding, of the worst that is told."""
    logs = [(item, item.observation) for item in situation.view.evidence if not isinstance(item.observation, Absence)]
    kernels = [(item, log) for item, log in logs if isinstance(log, KernelLog)]
    if not kernels or len(kernels) < len(logs):
        return
    told = [told for item, log in kernels for told in (*_errors(item, log), *_kills(item, log))]
    causes = {one.cause for one in told}
    cause = next((cause for cause in _WORST_FIRST if cause in causes), None)
    if cause is not None:
        yield _describe(cause, [one for one in told if one.cause is cause])


def _errors(item: Evidence, log: KernelLog) -> Iterator[_Told]:
    for event in log.xids:
        cause = cause_of_xid(event.caused_by or event.code)
        if cause is not None and event.is_fatal and not event.is_cleared:
            yield _Told(cause, _device(item.host, event), _error_words(event), event.when, item)


def _error_words(event: XidEvent) -> str:
    follows = f", said to follow from {name_xid(event.caused_by)}" if event.caused_by is not None else ""
    return f"{xid_words(event)}{follows}"


def _device(host: str | None, event: XidEvent) -> Subject:
    error = name_xid(event.caused_by or event.code)
    why = "the driver did not find it" if event.is_worded else f"the kernel log tells of {error}"
    return Subject(scope=Scope.DEVICE, host=host, device=Device(pci_bus_id=event.pci), why=why)


def _kills(item: Evidence, log: KernelLog) -> Iterator[_Told]:
    for kill in log.kills:
        if kill.name.startswith(RANK_NAMES):
            hosts = (item.host,) if item.host else ()
            subject = Subject(scope=Scope.HOST, host=item.host, hosts=hosts, pid=kill.pid, why="its kernel killed for memory")
            yield _Told(Cause.OOM_KILLED, subject, f"killed for memory: {kill_words(kill)}", kill.when, item)


def _describe(cause: Cause, told: list[_Told]) -> Finding:
    subjects = tuple({(one.subject.host, one.subject.device, one.subject.pid): one.subject for one in told}.values())
    words = dict.fromkeys(f"{one.text}{f' on {one.log.host}' if one.log.host else ''}" for one in told)
    more = f"; and {len(words) - MAX_TOLD} more" if len(words) > MAX_TOLD else ""
    return Finding(
        kind=Kind.INSUFFICIENT_EVIDENCE,
        cause=cause,
        confidence=Confidence.SUGGESTED,
        candidates=subjects,
        claim=(
            f"{'; '.join(list(words)[:MAX_TOLD])}{more}: so says the kernel log, and nothing that was read tells which job or "
            "rank that was"
        ),
        evidence=tuple(one.line for one in told[-MAX_LINES:]),
        advice=(SAVE_MEMORY if cause is Cause.OOM_KILLED else ADVICE[cause],),
    )
