"""What a scheduler says of a job's end, and hosts that run other versions: beside, before or without what ranks did."""

import pytest
from msgspec.structs import replace

from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence, JobDescription, SchedulerEnding, SoftwareSeen
from pardbg.watchdog.model.names import Cause, CollectorName, Kind, Scope, Status
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.outputs.blocks import Depth
from pardbg.watchdog.outputs.exit_code import exit_code
from pardbg.watchdog.outputs.page import build_page
from pardbg.watchdog.store.view import EvidenceView
from tests.diagnosis.live_evidence import LiveJob, job_of, sleeps, waits

WHEN = "2026-11-30T02:00:00Z"
PREEMPTED = SchedulerEnding(claim="job 7 was preempted", cause=Cause.PREEMPTED, is_from_outside=True)
LOST = SchedulerEnding(claim="job 7 lost a node", cause=Cause.NODE_LOST, hosts=("n2",), is_from_outside=True)
CANCELLED = SchedulerEnding(claim="job 7 was cancelled", is_from_outside=True)
EXITED = SchedulerEnding(claim="job 7 failed with exit code 1", cause=Cause.EXITED)


def _of(seen: SchedulerEnding | SoftwareSeen, host: str | None = None, rank: int | None = None) -> Evidence:
    return Evidence(source=CollectorName.HOST, rank=rank, host=host, observation=seen, origin="scontrol")


def _report(*evidence: Evidence) -> Report:
    return judge(EvidenceView.of(evidence), Circumstances(decided_at=WHEN))


def _alone(ending: SchedulerEnding) -> Report:
    described = Evidence(
        source=CollectorName.HOST, rank=None, observation=JobDescription(job="7", world_size=None), origin="scontrol"
    )
    return _report(described, _of(ending))


@pytest.mark.parametrize(("ending", "hosts"), [(PREEMPTED, []), (LOST, ["n2"])])
def test_what_the_scheduler_did_is_the_verdict_and_names_no_rank(ending: SchedulerEnding, hosts: list[str]) -> None:
    report = _alone(ending)
    assert report.verdict is not None
    assert (report.status, report.verdict.kind, report.verdict.cause) == (Status.FAILED, Kind.DEAD_RANK, ending.cause)
    assert [(subject.scope, subject.host) for subject in report.verdict.culprits] == [(Scope.HOST, host) for host in hosts]
    assert (report.verdict.claim, exit_code(report)) == (ending.claim, 3)
    assert ending.claim not in report.notes


def test_ends_of_ranks_after_it_are_its_consequences() -> None:
    job = LiveJob({}, ended={0: -15, 1: -15, 2: 1, 3: -9}, exceptions={2: "ValueError: late"})
    report = _report(*job.evidence(), _of(PREEMPTED))
    assert report.verdict is not None
    assert (report.verdict.cause, report.verdict.culprits) == (Cause.PREEMPTED, ())
    assert not any(subject.rank is not None for finding in report.findings for subject in finding.culprits)


@pytest.mark.parametrize(("ending", "code"), [(CANCELLED, 4), (EXITED, 4)])
def test_an_end_that_is_no_fault_of_anybody_seen_is_a_note(ending: SchedulerEnding, code: int) -> None:
    report = _alone(ending)
    assert (report.status, report.verdict, exit_code(report)) == (Status.FAILED, None, code)
    assert ending.claim in report.notes


def test_headline_of_an_ended_job_is_why_it_ended_and_says_it_once() -> None:
    page = build_page(_alone(CANCELLED), Depth.NORMAL)
    assert page.claim == "job 7 was cancelled."
    assert [fact.value for fact in page.facts.facts if fact.label == "note"] == []


def test_several_ranks_have_ended_and_were_killed_where_one_has_and_was() -> None:
    ends: list[dict[int, int | None]] = [{2: None, 3: None}, {2: None}, {2: -9, 3: -9}]
    claims = [LiveJob({0: waits(), 1: waits()}, ended=ended).report() for ended in ends]
    words = [report.verdict.claim for report in claims if report.verdict is not None]
    assert [claim.split(" before")[0] for claim in words] == [
        "ranks 2-3 have ended",
        "rank 2 has ended",
        "ranks 2-3 were killed by SIGKILL",
    ]


def _versions(*torch: str) -> list[Evidence]:
    return [_of(SoftwareSeen(torch=version, python="3.11"), f"n{rank}", rank) for rank, version in enumerate(torch)]


def test_one_host_with_another_version_is_named_beside_a_hang_and_blames_no_rank() -> None:
    evidence = [*job_of(waits(), waits(), sleeps(), waits()).evidence(), *_versions("2.13.0", "2.13.0", "2.13.0", "2.12.1")]
    report = _report(*evidence)
    assert report.verdict is not None
    assert (report.verdict.kind, [subject.rank for subject in report.verdict.culprits]) == (Kind.MISSING_PARTICIPANT, [2])
    (other,) = (finding for finding in report.findings if finding.kind is Kind.CONFIG_MISMATCH)
    assert [(subject.scope, subject.host, subject.rank) for subject in other.culprits] == [(Scope.HOST, "n3", None)]
    assert other.claim == "torch is not the same everywhere: 2.13.0 on 3 hosts, 2.12.1 on 1 host"
    assert {software.torch: software.hosts for software in report.software}["2.12.1"] == ("n3",)


def test_a_job_that_moves_on_uneven_hosts_is_degraded_and_exits_with_0() -> None:
    moving = [waits(), waits(), waits(), waits()]
    job = job_of(*moving, later={rank: sleeps() for rank in range(4)})
    report = _report(*job.evidence(), *_versions("2.13.0", "2.13.0", "2.13.0", "2.12.1"))
    assert report.verdict is not None
    assert (report.status, report.verdict.kind, exit_code(report)) == (Status.DEGRADED, Kind.CONFIG_MISMATCH, 0)


def test_two_hosts_that_differ_are_candidates_both() -> None:
    job = job_of(waits(), waits(), later={rank: sleeps() for rank in range(2)})
    report = _report(*job.evidence(), *_versions("2.13.0", "2.12.1"))
    (other,) = report.findings
    assert (other.culprits, {subject.host for subject in other.candidates}) == ((), {"n0", "n1"})


def test_versions_that_are_not_known_differ_from_none() -> None:
    job = job_of(waits(), waits(), later={rank: sleeps() for rank in range(2)})
    seen = [replace(item, observation=SoftwareSeen(python="3.11")) if item.rank else item for item in _versions("2.13.0", "x")]
    assert _report(*job.evidence(), *seen).findings == ()
