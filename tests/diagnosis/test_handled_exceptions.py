"""A rank whose exception handler entered a collective of its own is the one that left, by its stack and perhaps its log."""

from dataclasses import replace

import pytest

from pardbg.watchdog.model.evidence import SourceContext
from pardbg.watchdog.model.names import Cause, Confidence, Kind
from pardbg.watchdog.model.report import Report
from tests.diagnosis.live_evidence import Seen, frame, handled, job_of, waits

FITTING = frame("fit", 14, source=SourceContext())
IN_STEP = waits(around=(frame("step", 11, source=SourceContext()), FITTING))


def saving(clause: str, body: tuple[int, int], name: str = "save") -> Seen:
    return waits("broadcast", around=(frame(name, 7, source=SourceContext()), frame("fit", 18, source=handled(clause, body))))


def told(report: Report) -> tuple[Kind, Cause | None, set[int | None]]:
    finding = report.findings[0]
    return finding.kind, finding.cause, {subject.rank for subject in finding.culprits}


@pytest.mark.parametrize("peers", [1, 3])
def test_clause_around_a_collective_of_its_own_is_evidence_without_log_or_majority(peers: int) -> None:
    report = job_of(saving("except Exception", (13, 15)), *[IN_STEP] * peers).report()

    assert told(report) == (Kind.DEAD_RANK, Cause.EXCEPTION, {0})
    assert report.findings[0].confidence is Confidence.SUPPORTED
    assert "fit (mia/train.py:18) handles an exception, in `except Exception`" in {
        line.text for line in report.findings[0].evidence
    }
    assert [finding.kind for finding in report.findings] == [Kind.DEAD_RANK]  # no desync besides


@pytest.mark.parametrize(
    "other",
    [
        saving("except Exception", (3, 5)),  # of something the others are not in
        saving("finally", (13, 15)),  # entered without an exception, too
        saving("except Exception", (3, 5), "on_exception"),  # a name alone, and no exception in the log
    ],
)
def test_what_proves_no_exception_accuses_nobody_of_one(other: Seen) -> None:
    assert job_of(other, IN_STEP).report().findings[0].kind is not Kind.DEAD_RANK


def test_function_named_for_exceptions_is_evidence_once_the_log_has_one() -> None:
    job = job_of(IN_STEP, IN_STEP, saving("finally", (3, 5), "on_exception"), exceptions={2: "ValueError: loss is nan"})

    assert told(job.report()) == (Kind.DEAD_RANK, Cause.EXCEPTION, {2})


def test_ranks_that_all_handle_the_same_exception_are_not_told_apart() -> None:
    both = saving("except Exception", (13, 15), "on_exception")
    job = job_of(both, replace(both), exceptions={0: "ValueError: a", 1: "ValueError: a"})

    assert job.report().findings[0].kind is not Kind.DEAD_RANK


def test_clause_that_a_dead_peer_leads_into_accuses_no_survivor() -> None:
    job = job_of(saving("except Exception", (13, 15)), IN_STEP, ended={2: None})

    assert 0 not in {subject.rank for finding in job.report().findings for subject in finding.culprits}
