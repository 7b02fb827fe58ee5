"""What RAS must not conclude where one thing is missing that a rule stands on. Each comes of a mutant that lived."""

import pytest

from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence, JobDescription, RankDescription
from pardbg.watchdog.model.names import CollectorName, Kind
from pardbg.watchdog.model.ras import RasCommunicator, RasCount, RasPlace, RasSeen
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.store.view import EvidenceView
from tests.collectors.dumps import make_entry
from tests.diagnosis.diagnosing import WHEN
from tests.diagnosis.test_hand_made import evidence_from

WORLD = 6


def count(launched: int, *members: int, op: str = "AllReduce", number: int | None = None) -> RasCount:
    return RasCount(op=op, launched=launched, number=len(members) if number is None else number, members=members)


MOST, LATE = count(5, 0, 2, 3, 4, 5), count(4, 1)
OTHER = (count(9, 0, 1, 3, 4, 5, op="Broadcast"), count(8, 2, op="Broadcast"))


def report_of(
    *counts: RasCount, missing: tuple[int, ...] = (), dead: tuple[int, ...] = (), seen: tuple[int, ...] = ()
) -> Report:
    """Two equal answers; the ranks that were seen have finished all they issued."""
    places = [tuple(RasPlace(member=rank) for rank in ranks) for ranks in (missing, dead)]
    world = RasCommunicator(hash="1", size=WORLD, counts=counts, missing=places[0], dead=places[1])
    ranks = tuple(RankDescription(rank=rank, host="h1") for rank in range(WORLD))
    job = Evidence(
        source=CollectorName.HOST, rank=None, observation=JobDescription(job="j", world_size=WORLD, ranks=ranks), origin="j"
    )
    polls = [
        Evidence(source=CollectorName.RAS, rank=None, observation=RasSeen(sample=sample, communicators=(world,)), origin="ras")
        for sample in range(2)
    ]
    rings = evidence_from({rank: [make_entry(0)] for rank in seen}, pg_config={})
    return judge(EvidenceView.of([job, *polls, *rings]), Circumstances(decided_at=WHEN))


def accused(report: Report) -> set[int | None]:
    return {subject.rank for finding in report.findings for subject in finding.culprits}


def test_clear_minority_is_missing() -> None:
    report = report_of(MOST, LATE)
    assert report.verdict is not None
    assert (report.verdict.kind, accused(report)) == (Kind.MISSING_PARTICIPANT, {1})


@pytest.mark.parametrize(
    ("counts", "missing", "seen"),
    [
        pytest.param((count(5, 0, 2, 3, 4), LATE), (), (), id="a member's counts are not there"),
        pytest.param((MOST, LATE), (5,), (), id="a member is missing that is counted as well"),
        pytest.param((count(5, 0, 2, 3, 4), count(4, 1, number=2)), (), (), id="one that lags is not named"),
        pytest.param((MOST, LATE), (), (1,), id="the one that lags was seen"),
        pytest.param((MOST, LATE, *OTHER), (), (), id="two lag in two operations"),
        pytest.param((MOST, LATE, *OTHER), (), (2,), id="two lag, and one of them was seen"),
    ],
)
def test_counts_that_leave_something_open_accuse_nobody(
    counts: tuple[RasCount, ...], missing: tuple[int, ...], seen: tuple[int, ...]
) -> None:
    assert accused(report_of(*counts, missing=missing, seen=seen)) == set()


def test_who_was_seen_is_not_dead_because_ras_cannot_reach_it() -> None:
    gone = report_of(MOST, dead=(1,))
    assert gone.verdict is not None
    assert (gone.verdict.kind, accused(gone)) == (Kind.DEAD_RANK, {1})
    assert accused(report_of(MOST, dead=(1,), seen=(1,))) == set()
