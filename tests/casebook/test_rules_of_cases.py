"""What the casebook's rules must not conclude: each has one sign less than the case that it was made for."""

from pardbg.watchdog.bench.reading_files import diagnose_files
from pardbg.watchdog.model.names import Cause, Kind
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.lines import traceback
from pardbg.watchdog.sim.casebook.places import DESTROY, LOADER
from pardbg.watchdog.sim.instruction import Op


def job_of(world: int = 4) -> Job:
    return Job(Draw("rules", 0), world)


def kind_of(report: Report) -> Kind | None:
    return report.verdict.kind if report.verdict else None


def leaving(job: Job, *ranks: int) -> None:
    for rank in ranks:
        job.stand(rank, *DESTROY, job.draw.own("cleanup"), *job.base[2:])


def test_one_look_at_ranks_that_leave_is_no_hang() -> None:
    job = job_of()
    leaving(job, *job.ranks)
    assert kind_of(diagnose_files(job.files)) is not Kind.TEARDOWN_STUCK


def test_two_still_looks_at_ranks_that_leave_are_a_stuck_teardown() -> None:
    job = job_of()
    leaving(job, *job.ranks)
    for rank in job.ranks:
        job.look(rank)
    assert kind_of(diagnose_files(job.files)) is Kind.TEARDOWN_STUCK


def test_ranks_that_leave_while_another_trains_are_no_stuck_teardown() -> None:
    job = job_of()
    leaving(job, 0, 1, 2)
    job.stand(3, *LOADER, *job.base)
    for rank in job.ranks:
        job.look(rank)
    assert kind_of(diagnose_files(job.files)) is not Kind.TEARDOWN_STUCK


def diverged(error: str) -> Report:
    """Rank 2 saves on an exception, the others train."""
    job = job_of()
    job.step(3)
    frames = [job.draw.own(name) for name in ("save_checkpoint", "on_exception")]
    job.issue(Op.BROADCAST, 256, ranks=[2], at=job.at(Op.BROADCAST, *frames), is_done=False)
    job.issue(Op.ALL_REDUCE, 64, ranks=job.others(2), is_done=False)
    job.log(2, traceback(2, error, ("/app/train.py", 9, "step")))
    return diagnose_files(job.files)


def test_exception_of_its_own_that_leads_a_rank_elsewhere_comes_first() -> None:
    verdict = diverged("ValueError: empty batch").verdict
    assert verdict is not None
    assert (verdict.kind, verdict.cause, [s.rank for s in verdict.culprits]) == (Kind.DEAD_RANK, Cause.EXCEPTION, [2])


def test_exception_that_says_that_a_peer_was_lost_is_not_what_came_first() -> None:
    report = diverged("RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:1148")
    assert kind_of(report) is Kind.DESYNC


def test_ranks_that_were_aborted_and_are_waited_for_are_candidates_and_not_accused() -> None:
    job = job_of()
    job.step(3)
    job.issue(Op.ALL_REDUCE, 64, is_done=False)
    job.end(1, -6)
    job.end(2, -6)
    verdict = diagnose_files(job.files).verdict
    assert verdict is not None
    assert (verdict.kind, verdict.culprits) == (Kind.INSUFFICIENT_EVIDENCE, ())
    assert [subject.rank for subject in verdict.candidates] == [1, 2]
