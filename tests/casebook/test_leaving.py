"""Ranks that leave are stuck only where nothing else explains it. Each comes of a mutant that lived."""

from pardbg.watchdog.bench.reading_files import diagnose_files
from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.lines import traceback
from tests.casebook.test_rules_of_cases import job_of, kind_of, leaving


def left_by(*ranks: int) -> Job:
    """A job of four in which these stand in the take-down of their groups, at both looks."""
    job = job_of()
    leaving(job, *ranks)
    for rank in ranks:
        job.look(rank)
    return job


def test_ranks_that_have_left_do_not_keep_the_others_from_being_stuck() -> None:
    job = left_by(0, 1, 2)
    job.end(3, 0)
    verdict = diagnose_files(job.files).verdict
    assert verdict is not None
    assert (verdict.kind, [subject.rank for subject in verdict.culprits]) == (Kind.TEARDOWN_STUCK, [0, 1, 2])


def test_ranks_that_leave_after_an_exception_are_no_stuck_teardown() -> None:
    job = left_by(0, 1, 2, 3)
    job.log(2, traceback(2, "ValueError: empty batch", ("/app/train.py", 9, "step")))
    assert kind_of(diagnose_files(job.files)) is not Kind.TEARDOWN_STUCK
