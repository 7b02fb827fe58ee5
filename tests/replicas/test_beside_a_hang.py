"""Replicas that differ neither hide a hang nor explain it."""

from collections.abc import Iterator

from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.heartbeat import Heartbeat
from pardbg.watchdog.model.names import Cause, CollectorName, JobSource, Kind, Status
from pardbg.watchdog.store.view import EvidenceView
from tests.diagnosis.live_evidence import WHEN, job_of, sleeps, waits
from tests.replicas.replicas import apart, named, replica


def beats() -> Iterator[Evidence]:
    """Replica 0 differs; all have long finished their last step."""
    for rank in range(4):
        beat = Heartbeat(sample=1, step=200, replica=replica(apart(5)) if rank == 0 else replica())
        yield Evidence(source=CollectorName.HOST, rank=rank, observation=beat, origin="page")


def test_the_hang_is_the_verdict_and_its_victim_may_hold_the_ill_replica() -> None:
    evidence = [*job_of(waits(), waits(), sleeps(), waits()).evidence(), *beats()]
    report = judge(EvidenceView.of(evidence), Circumstances(decided_at=WHEN, source=JobSource.RUN, sampled_at=(WHEN, WHEN)))
    hang, divergence = report.findings
    assert (hang.kind, hang.cause, named(hang)) == (Kind.MISSING_PARTICIPANT, Cause.SLEEPING, ({2}, set()))
    assert (divergence.kind, named(divergence)) == (Kind.REPLICA_DIVERGENCE, ({0}, set()))
    assert (report.status, hang.victims) == (Status.HUNG, (0, 1, 3))
