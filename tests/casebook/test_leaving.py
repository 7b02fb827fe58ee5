"""Ranks that leave are stuck only where nothing else explains it. Each comes of a mutant that lived."""

from pardbg.watchdog.bench.reading_files import diagnose_files
from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.model.recording import Frame
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.lines import traceback
from pardbg.watchdog.sim.casebook.places import SAVE, standard
from pardbg.watchdog.sim.instruction import Op
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


def finished_but(rank: int, *frames: Frame) -> Job:
    """A job of four in which all but one ended with exit code 0; that one stands at these frames, at both looks."""
    job = job_of()
    job.step(3)
    for other in job.others(rank):
        job.end(other, 0)
    job.stand(rank, *frames, *job.base[2:])
    job.look(rank)
    return job


def test_ranks_that_ended_well_after_training_are_not_dead_and_who_is_left_does_not_leave() -> None:
    job = finished_but(2, standard("_wait_for_tstate_lock", "threading.py", 1139), standard("_shutdown", "threading.py", 1570))
    finding = diagnose_files(job.files).findings[0]
    assert (finding.kind, [subject.rank for subject in finding.culprits]) == (Kind.TEARDOWN_STUCK, [2])
    assert len(diagnose_files(job.files).findings) == 1


def test_who_stands_still_before_the_take_down_keeps_those_who_are_in_it() -> None:
    job = job_of()
    job.step(3)
    job.end(3, 0)
    leaving(job, 0, 1)
    job.stand(2, standard("wait", "threading.py", 320), job.draw.own("finish_run", "tracking.py"), *job.base[2:])
    for rank in (0, 1, 2):
        job.look(rank)
    finding = diagnose_files(job.files).findings[0]
    assert (finding.kind, [subject.rank for subject in finding.culprits]) == (Kind.TEARDOWN_STUCK, [2])
    assert finding.victims == (0, 1)


def test_who_writes_the_last_checkpoint_after_the_others_have_left_is_at_work() -> None:
    job = finished_but(0, *SAVE, Draw("rules", 0).own("save_last"))
    assert diagnose_files(job.files).findings == ()


def test_rank_that_left_with_code_0_while_the_others_wait_in_training_is_dead() -> None:
    job = job_of()
    job.step(3)
    job.issue(Op.ALL_REDUCE, 64, ranks=job.others(1), is_done=False)
    job.end(1, 0)
    finding = diagnose_files(job.files).findings[0]
    assert (finding.kind, [subject.rank for subject in finding.culprits]) == (Kind.DEAD_RANK, [1])
