"""Logs that only say whom others missed, or what they did to a rank: a lone voice is a victim, and hearsay accuses nobody."""

import pytest

from pardbg.watchdog.model.names import Cause, Kind
from pardbg.watchdog.outputs.exit_code import exit_code
from tests.diagnosis.log_files import (
    TRACEBACK,
    blamed,
    candidates,
    job,
    report_of,
    status,
    timed_out,
    told,
    torchrun_report,
)

NOTHING: tuple[Kind, None, set[int]] = (Kind.INSUFFICIENT_EVIDENCE, None, set())
UNSURE = "RuntimeError: NCCL error in: x.cpp:7, unhandled system error"
REACHED = (
    "[rank{0}]: RuntimeError: Rank {0} successfully reached monitoredBarrier, but received errors while waiting for send/recv "
    "from rank 0. Please check rank 0 logs for faulty rank.\n"
)


def signed(rank: int, exception: str, at: str = "") -> str:
    return "".join(f"{at}[rank{rank}]: {line}\n" for line in TRACEBACK.format(exception=exception).splitlines())


@pytest.mark.parametrize(
    "exception", ["RuntimeError: Broken pipe", "horovod.common.exceptions.HorovodInternalError: shut down"]
)
def test_a_lone_victim_is_no_culprit(exception: str) -> None:
    report = report_of({"a.log": signed(1, exception), "rank0.log": "step 9\n"} | job(3))
    assert (told(report), candidates(report), exit_code(report)) == (NOTHING, {0, 2}, 4)
    own = report_of({"a.log": signed(1, exception) + signed(0, "KeyError: 7")} | job(3))
    assert told(own) == (Kind.DEAD_RANK, Cause.EXCEPTION, {0})


def test_an_exception_that_may_be_anybodys_accuses_nobody() -> None:
    report = report_of({"a.log": signed(1, UNSURE)} | job(3))
    assert (told(report), candidates(report)) == (NOTHING, {0, 1, 2})
    assert report.verdict is not None
    assert "whether by itself or because another rank had gone is not told" in report.verdict.claim

    waited = report_of({"a.log": signed(1, UNSURE), "rank0.log": timed_out(0, 9), "rank2.log": timed_out(2, 9)} | job(3))
    assert (told(waited), candidates(waited)) == (NOTHING, {1})


@pytest.mark.parametrize(("seconds", "culprits"), [(1, {0}), (40, set[int]())])
def test_an_own_error_outdoes_an_unsure_one_unless_that_came_long_before(seconds: int, culprits: set[int]) -> None:
    first = signed(1, UNSURE, at="2026-11-29 14:23:00,000 ")
    text = first + signed(0, "KeyError: 7", at=f"2026-11-29 14:23:{seconds:02d},000 ")
    assert told(report_of({"a.log": text} | job(3)))[2] == culprits


def test_ended_with_an_unsure_exception_beside_others_is_not_the_first() -> None:
    launched = {"launcher.log": torchrun_report({0: -15, 1: 1, 2: -15}, root=1)}
    assert told(report_of({"a.log": signed(1, UNSURE)} | launched))[2] == set()
    assert told(report_of({"a.log": signed(1, "KeyError: 7")} | launched))[2] == {1}


def test_rank_0_of_a_monitored_barrier_is_not_accused_by_those_that_reached_it() -> None:
    report = report_of({"a.log": REACHED.format(1) + REACHED.format(3)} | job(4))
    assert (told(report), candidates(report), blamed([report])) == (NOTHING, {0, 2}, set())
    assert report.verdict is not None
    assert report.verdict.victims == (1, 3)
    assert "only its own log says which" in report.verdict.claim

    named = "[rank0]: RuntimeError: [Rank 0]: Ranks 2 failed to pass monitoredBarrier in 7000 ms\n"
    assert told(report_of({"a.log": REACHED.format(1) + named} | job(4))) == (Kind.MISSING_PARTICIPANT, None, {2})


def test_who_was_aborted_after_its_own_watchdog_gave_up_is_no_candidate() -> None:
    launched = {"launcher.log": torchrun_report({1: -6}, root=1)}
    report = report_of({"a.log": timed_out(1, 41), "rank0.log": "step 9\n"} | launched | job(3))
    assert told(report) == NOTHING
    assert 1 not in candidates(report)
    assert candidates(report_of({"a.log": timed_out(0, 41)} | launched | job(3))) >= {1}  # its own log says nothing of it


def test_who_signals_a_timeout_of_its_own_is_no_candidate() -> None:
    line = "[rank0]:[E1129 14:23:02.000000 ProcessGroupNCCL.cpp:2573] [PG ID 1 PG GUID 1 Rank 0] {}\n"
    waits = timed_out(2, 41) + status(2, 43, 40)
    files = {"rank1.log": "step 9\n"} | job(3)
    own = report_of({"a.log": waits + line.format("First PG on this rank to signal dumping.")} | files)
    other = report_of(
        {"a.log": waits + line.format("Observed flight recorder dump signal from another rank via TCPStore.")} | files
    )
    assert (candidates(own), candidates(other)) == ({1}, {0, 1})


def test_a_timeout_of_hccl_is_its_ranks_that_waited() -> None:
    text = "[rank1]: EI0006: [PID: 12] 2026-11-29-14:23:07.444.436 {}. Please check the cluster\n"
    report = report_of({"rank1.log": text.format("Getting socket times out. Reason: Remote Rank did not send")} | job(2))
    assert (told(report), candidates(report)) == (NOTHING, {0})
    assert report_of({"rank1.log": text.format("no such device")} | job(2)).verdict is None


STALLED = "[2026-11-29 14:23:01.858119: W horovod/common/stall_inspector.cc:107] {}\n"


@pytest.mark.parametrize(
    ("text", "kind", "named"),
    [
        ("[1,0]<stderr>:" + STALLED.format("grad.w [missing ranks: 1]"), Kind.MISSING_PARTICIPANT, {1}),
        (STALLED.format("wait") + "Missing ranks:\n1: [grad.w, grad.b]\n2: [grad.w]\n", Kind.MISSING_PARTICIPANT, {1, 2}),
        ("x [missing ranks: 0]\n" + STALLED.format("y [missing ranks: 1]"), Kind.INSUFFICIENT_EVIDENCE, {0, 1}),
    ],
)
def test_horovod_names_candidates_and_accuses_nobody(text: str, kind: Kind, named: set[int]) -> None:
    report = report_of({"train.log": text} | job(3))
    assert (told(report), candidates(report)) == ((kind, None, set()), named)


OOM = (
    "(raylet) [2026-11-29 14:23:00,117 E 1 1] (raylet) node_manager.cc:3069: {} Workers (tasks / actors) killed due to memory "
    "pressure (OOM), 0 Workers crashed due to other reasons at\nnode (ID: 35, IP: 10.0.0.8) over the last time period.\n"
)
ACTOR = (
    "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n\tclass_name: w.<locals>.Trainer\n"
    "\tactor_id: f2\n\tpid: 5226\n\tip: 10.0.0.8\n"
)


def test_ray_tells_that_a_worker_was_killed_for_memory_or_that_an_actor_died() -> None:
    report = report_of({"train.log": OOM.format(1)})
    assert report.verdict is not None
    assert (report.verdict.kind, report.verdict.cause) == (Kind.DEAD_RANK, Cause.OOM_KILLED)
    assert [subject.host for subject in report.verdict.culprits] == ["10.0.0.8"]
    assert report_of({"train.log": OOM.format(0)}).verdict is None

    report = report_of({"train.log": OOM.format(0) + ACTOR})
    assert told(report) == NOTHING
    assert report.verdict is not None
    assert "the actor Trainer (pid 5226) on 10.0.0.8 died unexpectedly" in report.verdict.claim
