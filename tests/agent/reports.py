"""Reports as a scan would give them, cut to what an agent looks at."""

from pardbg.watchdog.model.names import Confidence, JobSource, Kind, Scope, Status
from pardbg.watchdog.model.report import Coverage, Finding, Job, Report, Subject


def report(status: Status, kind: Kind | None, *, host: str = "n2", claim: str = "rank 2 has not joined all_reduce") -> Report:
    """A report with this verdict, of rank 2 on that host."""
    culprit = Subject(scope=Scope.RANK, rank=2, host=host)
    finding = None if kind is None else Finding(kind=kind, confidence=Confidence.ESTABLISHED, culprits=(culprit,), claim=claim)
    return Report(
        pardbg_version="0",
        job=Job(id="job", source=JobSource.TORCHRUN, world_size=4, attempt=0),
        status=status,
        verdict=finding,
        findings=() if finding is None else (finding,),
        set_aside=(),
        unknowns=(),
        coverage=Coverage(ranks_expected=4, ranks_seen=4, by_collector={}),
        layout=None,
        software=(),
        decided_at="2026-11-30T06:00:00.000Z",
        sampled_at=(),
        took_s=1.0,
        notes=(),
    )
