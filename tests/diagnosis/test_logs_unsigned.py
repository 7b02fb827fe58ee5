"""Errors that nobody signs: whose they are where a launcher tells, what failed where nobody does, and crashes."""

import pytest

from pardbg.watchdog.model.names import Cause, Confidence, Kind, Status
from tests.diagnosis.log_files import TRACEBACK, candidates, report_of, timed_out, told, torchrun_report

OWN = TRACEBACK.format(exception="KeyError: 'tokens'")
DIED = "[E x.cpp:1182] [Rank 1] NCCL watchdog thread terminated with exception: CUDA error: an illegal memory access"
IN_COLLECTIVE = (
    "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f2e (most recent call first):\n"
    '  File "/x/torch/distributed/distributed_c10d.py", line 41 in all_reduce\n'
)


def test_the_only_exception_is_of_the_only_rank_that_its_launcher_reports() -> None:
    report = report_of({"train.log": OWN + torchrun_report({0: -15, 1: 1}, root=1)})
    assert told(report) == (Kind.DEAD_RANK, Cause.EXCEPTION, {1})
    assert report.verdict is not None
    assert report.verdict.confidence is Confidence.SUPPORTED
    assert report.status is Status.FAILED


@pytest.mark.parametrize(
    "text",
    [
        OWN + torchrun_report({0: 1, 1: 1}, root=1),
        OWN + TRACEBACK.format(exception="TypeError: x") + torchrun_report({0: -15, 1: 1}, root=1),
        OWN + torchrun_report({0: -9, 1: 1}, root=1),
        TRACEBACK.format(exception="RuntimeError: Broken pipe") + torchrun_report({0: -15, 1: 1}, root=1),
    ],
)
def test_where_more_than_one_may_have_raised_it_nobody_is_accused(text: str) -> None:
    assert told(report_of({"train.log": text}))[2] == set()


def test_an_exception_of_nobody_knows_whom_is_told_and_accuses_nobody() -> None:
    report = report_of({"train.log": "step 1\n" + OWN})
    assert told(report) == (Kind.INSUFFICIENT_EVIDENCE, None, set())
    assert candidates(report) == set()
    assert report.verdict is not None
    assert report.verdict.claim.startswith("a rank that the log does not name failed with KeyError: 'tokens', raised at ")

    missed = report_of({"train.log": f"step 1\n{OWN}[Rank 0] {timed_out(0, 9).partition('] ')[2]}"})
    assert told(missed) == (Kind.DEAD_RANK, Cause.EXCEPTION, set())


def test_a_watchdog_of_any_age_says_that_its_rank_died_of_its_device() -> None:
    signed = report_of({"train.log": f"[rank1]:{DIED}\n{timed_out(0, 41)}"})
    assert told(signed) == (Kind.DEAD_RANK, Cause.EXCEPTION, {1})
    unsigned = report_of({"train.log": f"step 1\n{DIED}\n"})
    assert told(unsigned) == (Kind.DEAD_RANK, Cause.EXCEPTION, set())  # the number is one of a group


def test_a_crash_is_a_death_and_no_wait() -> None:
    assert told(report_of({"log_rank2.txt": IN_COLLECTIVE})) == (Kind.DEAD_RANK, Cause.SIGNAL, {2})
    assert told(report_of({"train.log": IN_COLLECTIVE})) == (Kind.DEAD_RANK, Cause.SIGNAL, set())


def test_a_crash_after_which_its_rank_trains_on_was_a_childs() -> None:
    assert told(report_of({"log_rank2.txt": f"{IN_COLLECTIVE}step 9 loss 1.0\n", "log_rank0.txt": "step 9\n"}))[2] == set()


def test_an_abort_may_be_a_watchdogs() -> None:
    assert told(report_of({"log_rank2.txt": IN_COLLECTIVE.replace("Segmentation fault", "Aborted")}))[2] == set()


def test_lines_that_nobody_understands_are_quoted() -> None:
    report = report_of({"train.log": "step 1\nERROR foo: the frobnicator failed\nstep 2\n"})
    assert (report.status, report.verdict) == (Status.UNDETERMINED, None)
    assert [unknown.detail for unknown in report.unknowns] == [
        "speaks of an error and is not understood: ERROR foo: the frobnicator failed"
    ]
    assert report_of({"train.log": "step 1\n0 errors, 3 warnings\n"}).unknowns == ()
