"""What the casebook's rules must not conclude: each has one sign less than the case that it was made for."""

import pytest

from pardbg.watchdog.bench.reading_files import diagnose_files
from pardbg.watchdog.model.names import Cause, Confidence, Kind
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.lines import traceback, xid
from pardbg.watchdog.sim.casebook.places import DESTROY, LAUNCH_TOP, LOADER, RPC_WAIT, SYNCHRONIZE
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


def diverged(error: str, *also: int, handler: str = "on_exception") -> Report:
    """Rank 2 saves on an exception, and these save as well; the others train."""
    job = job_of(4 + 4 * len(also))
    job.step(3)
    frames = [job.draw.own(name) for name in ("save_checkpoint", handler)]
    job.issue(Op.BROADCAST, 256, ranks=[2, *also], at=job.at(Op.BROADCAST, *frames), is_done=False)
    job.issue(Op.ALL_REDUCE, 64, ranks=job.others(2, *also), is_done=False)
    job.log(2, traceback(2, error, ("/app/train.py", 9, "step")))
    return diagnose_files(job.files)


def test_exception_of_its_own_that_leads_a_rank_elsewhere_comes_first() -> None:
    verdict = diverged("ValueError: empty batch").verdict
    assert verdict is not None
    assert (verdict.kind, verdict.cause, [s.rank for s in verdict.culprits]) == (Kind.DEAD_RANK, Cause.EXCEPTION, [2])


def test_exception_that_says_that_a_peer_was_lost_is_not_what_came_first() -> None:
    report = diverged("RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:1148")
    assert kind_of(report) is Kind.DESYNC


def test_exception_that_nothing_handles_or_that_not_all_who_went_elsewhere_have_is_not_what_came_first() -> None:
    assert kind_of(diverged("ValueError: empty batch", handler="on_evaluate")) is Kind.DESYNC
    assert kind_of(diverged("ValueError: empty batch", 3)) is Kind.DESYNC


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


NOT_SURE = Kind.INSUFFICIENT_EVIDENCE
FATAL = "NETIR_LINK_EVT Fatal XC0 i0 Link 03 (0x00000004 0x0000000a 0x00000000 0x00000000 0x00000000 0x00000000)"
NONFATAL = FATAL.replace("Fatal", "Nonfatal").replace("Link 03", "Link -1")


def aborted(errors: dict[int, tuple[int, str]], *, missing: int | None = None) -> tuple[Kind | None, set[int | None]]:
    """Ranks 1 and 2 were aborted, the GPUs of some ranks have errors; one may be at its loader."""
    job = job_of()
    job.step(3)
    job.issue(Op.ALL_REDUCE, 64, ranks=job.others(*(() if missing is None else (missing,))), is_done=False)
    if missing is not None:
        job.stand(missing, *LOADER, *job.base)
    for rank in (1, 2):
        job.end(rank, -6)
    for rank, (code, text) in errors.items():
        job.kernel(job.host(0), xid(job.pci(rank), code, text, 5.0))
    report = diagnose_files(job.files)
    blamed = {subject.rank for finding in report.findings for subject in finding.culprits}
    return kind_of(report), blamed


@pytest.mark.parametrize("errors", [{1: (145, FATAL), 2: (145, FATAL)}, {1: (79, "GPU has fallen off the bus.")}])
def test_ranks_aborted_after_their_own_gpus_failed_went_first(errors: dict[int, tuple[int, str]]) -> None:
    assert aborted(errors) == (Kind.DEAD_RANK, {*errors})


@pytest.mark.parametrize(
    "errors",
    [
        {1: (45, "Ch 00000001"), 2: (45, "Ch 00000001")},  # clean-up
        {1: (13, "Graphics Exception"), 2: (13, "Graphics Exception")},  # a program mostly makes it itself
        {1: (144, NONFATAL), 2: (144, NONFATAL)},
    ],
)
def test_an_abort_beside_an_error_that_stops_nothing_is_a_consequence(errors: dict[int, tuple[int, str]]) -> None:
    assert aborted(errors) == (NOT_SURE, set())


def test_an_abort_whose_error_gpus_of_the_living_have_too_is_a_matter_of_the_fabric() -> None:
    _, blamed = aborted(dict.fromkeys(range(4), (145, FATAL)))
    assert not blamed & {1, 2}


def test_an_abort_is_no_first_cause_where_somebody_is_missing() -> None:
    kind, blamed = aborted({1: (145, FATAL), 2: (145, FATAL)}, missing=3)
    assert (kind, blamed) == (Kind.MISSING_PARTICIPANT, {3})


def in_rpc(*, idle: int | None = None, unseen: int | None = None) -> Report:
    """Rank 1 waits in an RPC, the others for it."""
    job = job_of()
    job.step(3)
    job.issue(Op.ALL_REDUCE, 64, ranks=[rank for rank in job.ranks if rank not in {1, idle}], is_done=False)
    job.stand(1, *RPC_WAIT, *job.base)
    if unseen is not None:
        job.unseen(unseen)
    return diagnose_files(job.files)


def test_where_all_others_wait_for_a_rank_inside_another_library_it_is_a_matter_of_both() -> None:
    verdict = in_rpc().verdict
    assert verdict is not None
    assert (verdict.kind, verdict.cause, verdict.culprits) == (Kind.COMM_STUCK, Cause.FOREIGN_COMM, ())
    assert (verdict.confidence, verdict.victims) == (Confidence.SUGGESTED, (0, 1, 2, 3))  # it was looked at once


def test_a_wait_inside_another_library_may_be_for_a_rank_that_is_idle_or_was_not_seen() -> None:
    assert kind_of(in_rpc(idle=2)) is Kind.MISSING_PARTICIPANT
    assert kind_of(in_rpc(unseen=3)) is NOT_SURE


def jammed(
    *, works: int | None = None, elsewhere: int | None = None, is_outstanding: bool = False, seconds: int = 60
) -> Kind | None:
    """All stand in launches, their GPUs spin."""
    job = job_of()
    job.step(3)
    if is_outstanding:
        job.issue(Op.ALL_REDUCE, 64, is_done=False)
    for rank in job.ranks:
        frames = () if rank == elsewhere else LAUNCH_TOP
        job.stand(rank, *frames, *job.base, is_native=True)
        job.gpu(rank, util=97, power_w=600 if rank == works else 90, mem_util=40 if rank == works else 0, seconds=seconds)
    return kind_of(diagnose_files(job.files))


def test_launches_that_do_not_return_while_all_gpus_spin_are_a_matter_of_the_devices() -> None:
    assert jammed() is Kind.DEVICE_STUCK


def test_launches_behind_a_gpu_that_works_or_beside_a_rank_elsewhere_are_no_fault() -> None:
    assert jammed(works=2) is not Kind.DEVICE_STUCK
    assert jammed(elsewhere=2) is not Kind.DEVICE_STUCK
    assert jammed(is_outstanding=True) is Kind.COMM_STUCK
    assert jammed(seconds=8) is not Kind.DEVICE_STUCK  # some other step may have ended in between


def test_a_rank_that_waits_for_a_device_that_nobody_saw_is_a_candidate_and_not_accused() -> None:
    """It may wait for a kernel that waits for a peer, as those of DeepEP do: C59 without its GPU is not told further."""
    job = job_of()
    job.step(3)
    job.issue(Op.ALL_REDUCE, 64, ranks=job.others(2), is_done=False)
    job.stand(2, *SYNCHRONIZE, *job.base)
    verdict = diagnose_files(job.files).verdict
    assert verdict is not None
    assert (verdict.kind, verdict.culprits, [subject.rank for subject in verdict.candidates]) == (NOT_SURE, (), [2])
