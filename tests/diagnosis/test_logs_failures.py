"""Who failed first, by logs alone: primary errors told from what follows from them, and what launchers report of it."""

import pytest

from pardbg.watchdog.model.names import Cause, Confidence, Kind, Status
from tests.collectors.dumps import make_entry, outstanding
from tests.diagnosis.log_files import (
    PEER_GONE,
    TRACEBACK,
    candidates,
    illegal_access,
    job,
    report_of,
    should_dump,
    status,
    timed_out,
    told,
    torchrun_report,
)
from tests.diagnosis.test_hand_made import evidence_from

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def test_the_first_error_of_its_own_is_to_blame_and_not_the_ranks_that_lost_their_store() -> None:
    files = {f"rank{rank}.log": should_dump(rank) for rank in (0, 1, 3)}
    files["rank2.log"] = status(2, 45, 40) + illegal_access(2, "1129 14:23:02.000000") + should_dump(2)
    report = report_of(files | job(4))

    assert told(report) == (Kind.DEAD_RANK, Cause.EXCEPTION, {2})
    assert report.verdict is not None
    assert report.verdict.victims == (0, 1, 3)
    assert "illegal memory access" in report.verdict.claim


def test_whoever_logs_first_is_a_victim_where_another_has_an_error_of_its_own() -> None:
    """T1 and C40: the exception came half an hour before the others gave up, and its rank says little."""
    files = {
        "rank0.log": timed_out(0, 41, at="1129 14:00:00.000000") * 3,
        "rank1.log": "[rank1]: step 7\n" + TRACEBACK.format(exception="ValueError: bad sample"),
        "rank2.log": "RuntimeError: [/gloo/unbound_buffer.cc:78] Timed out waiting 1800000ms for send operation to complete\n",
    }
    assert told(report_of(files | job(3))) == (Kind.DEAD_RANK, Cause.EXCEPTION, {1})


@pytest.mark.parametrize(
    ("later", "hosts", "culprits", "open_"),
    [
        ("14:23:02.500000", {0: "a", 1: "b"}, set(), {0, 1}),  # clocks of two hosts differ by more
        ("14:23:09.000000", {0: "a", 1: "b"}, {0}, set()),
        ("14:23:03.200000", {0: "a", 1: "a"}, {0}, set()),  # one clock
        ("14:23:02.500000", {0: "a", 1: "a"}, set(), {0, 1}),
    ],
)
def test_errors_are_ordered_by_their_times_with_an_allowance_for_clocks(
    later: str, hosts: dict[int, str], culprits: set[int], open_: set[int]
) -> None:
    """T8."""
    files = {
        "rank0.log": illegal_access(0, "1129 14:23:02.000000"),
        "rank1.log": illegal_access(1, f"1129 {later}"),
        "rank2.log": should_dump(2),
    }
    report = report_of(files | job(3, hosts))
    assert told(report) == (Kind.DEAD_RANK, Cause.EXCEPTION, culprits)
    assert candidates(report) == open_


def test_errors_around_new_year_keep_their_order() -> None:
    files = {
        "rank0.log": illegal_access(0, "0101 00:00:20.000000"),
        "rank1.log": illegal_access(1, "1231 23:59:50.000000"),
        "rank2.log": should_dump(2),
    }
    assert told(report_of(files | job(3)))[2] == {1}


def test_exceptions_without_times_are_not_ordered() -> None:
    """T10."""
    files = {f"rank{rank}.log": TRACEBACK.format(exception="ValueError: x") for rank in (0, 1)} | {"rank2.log": should_dump(2)}
    report = report_of(files | job(3))
    assert told(report) == (Kind.DEAD_RANK, Cause.EXCEPTION, set())
    assert candidates(report) == {0, 1}


def test_an_exception_that_nobody_waits_for_may_have_been_caught() -> None:
    report = report_of({"rank1.log": TRACEBACK.format(exception="ValueError: x"), "rank0.log": "step 9\n"} | job(2))
    assert told(report) == (Kind.INSUFFICIENT_EVIDENCE, None, set())
    assert candidates(report) == {1}


def test_an_exception_that_torch_says_nobody_caught_ended_its_rank_though_nobody_waits() -> None:
    uncaught = "".join(f"[rank1]: {line}\n" for line in TRACEBACK.format(exception="KeyError: 3").splitlines())
    report = report_of({"rank1.log": "step 9\n" + uncaught, "rank0.log": "step 9\n"})
    assert told(report) == (Kind.DEAD_RANK, Cause.EXCEPTION, {1})
    assert report.status is Status.FAILED


def test_an_exception_after_which_its_rank_trains_on_accuses_nobody() -> None:
    """It was caught and logged; whoever lost a peer lost another one."""
    caught = TRACEBACK.format(exception="ConnectionError: api.wandb.ai timed out")
    went_on = {"rank0.log": caught + "step 10 loss 1.0\n"}
    report = report_of(went_on | {"rank1.log": TRACEBACK.format(exception=PEER_GONE)} | job(3))
    assert told(report) == (Kind.INSUFFICIENT_EVIDENCE, None, set())
    healthy = report_of({"rank0.log": caught + "step 10 loss 1.0\nTraining finished\n", "rank1.log": "Training finished\n"})
    assert (healthy.status, healthy.verdict) == (Status.HEALTHY, None)


def test_the_same_exception_on_all_ranks_is_one_fault_of_them_all() -> None:
    files = {f"rank{rank}.log": TRACEBACK.format(exception="ModuleNotFoundError: No module named 'x'") for rank in range(3)}
    report = report_of(files)
    assert told(report) == (Kind.DEAD_RANK, Cause.EXCEPTION, {0, 1, 2})
    assert report.status is Status.FAILED
    assert report.verdict is not None
    assert report.verdict.claim == "all 3 ranks failed with the same error: ModuleNotFoundError: No module named 'x'"
    other = report_of(files | {"rank2.log": TRACEBACK.format(exception="KeyError: 1")})
    assert told(other) == (Kind.INSUFFICIENT_EVIDENCE, None, set())
    assert candidates(other) == {0, 1, 2}


def test_a_batch_skipped_for_want_of_memory_is_no_death() -> None:
    """C08: the process went on; that its sequence differs, only a recorder would show."""
    skipped = "[rank1]: WARNING: ran out of memory with exception: CUDA out of memory. Skipping batch\n"
    report = report_of({"rank1.log": skipped, "rank0.log": timed_out(0, 9), "rank2.log": timed_out(2, 9)} | job(3))
    assert told(report) == (Kind.INSUFFICIENT_EVIDENCE, None, set())
    assert candidates(report) == {1}

    died = report_of({"rank1.log": TRACEBACK.format(exception=OOM), "rank0.log": timed_out(0, 9)} | job(2))
    assert told(died) == (Kind.DEAD_RANK, Cause.EXCEPTION, {1})


def test_what_recorders_show_is_not_overturned_by_a_log_and_is_explained_by_it() -> None:
    rings = {0: [make_entry(0), outstanding(1)], 1: [make_entry(0), outstanding(1)], 2: [make_entry(0)]}
    report = report_of(
        {"rank0.log": illegal_access(0, "1129 14:23:02.000000"), "rank2.log": timed_out(2, 1)} | job(3), *evidence_from(rings)
    )
    assert told(report)[0] is Kind.MISSING_PARTICIPANT
    assert told(report)[2] == {2}
    assert report.verdict is not None
    assert any(line.source == "rank-log" and "ran for" in line.text for line in report.verdict.evidence)

    unseen = {rank: ring for rank, ring in rings.items() if rank != 2}  # nothing but its log is there of rank 2
    report = report_of({"rank2.log": TRACEBACK.format(exception=OOM)} | job(3), *evidence_from(unseen))
    assert told(report) == (Kind.DEAD_RANK, Cause.EXCEPTION, {2})


def test_a_launchers_signals_tell_culprit_and_victims() -> None:
    """C35: -15 is what the agent sends; who sent SIGKILL is not known."""
    report = report_of({"launcher.log": torchrun_report({0: -15, 1: -9, 2: -15}, root=0)})
    assert told(report) == (Kind.DEAD_RANK, Cause.SIGNAL, {1})
    assert report.status is Status.FAILED
    assert report.verdict is not None
    assert report.verdict.victims == (0, 2)
    assert report.verdict.evidence[0].source == "rank-log"


def test_what_torchrun_calls_the_root_cause_is_not_believed() -> None:
    """T1: an exit code alone is what a rank that lost a peer has, too."""
    report = report_of({"launcher.log": torchrun_report({0: 1, 1: -15}, root=0)})
    assert told(report) == (Kind.INSUFFICIENT_EVIDENCE, None, set())
    assert candidates(report) == {0}

    lost = {"rank0.log": TRACEBACK.format(exception=PEER_GONE), "rank2.log": TRACEBACK.format(exception="KeyError: 'x'")}
    report = report_of({"launcher.log": torchrun_report({0: 1, 1: -15, 2: 1}, root=0)} | lost)
    assert told(report) == (Kind.DEAD_RANK, Cause.EXCEPTION, {2})


def test_sigkill_beside_an_error_may_be_the_launchers_own() -> None:
    """Agents kill what does not end by SIGTERM."""
    for code in (1, -6):
        report = report_of({"launcher.log": torchrun_report({0: -9, 1: code}, root=1)})
        assert told(report) == (Kind.INSUFFICIENT_EVIDENCE, None, set())
        assert candidates(report) == {0, 1}


def test_the_only_sigkill_that_a_launcher_noticed_first_is_not_its_own() -> None:
    """Who loses a peer ends with 1, and never by SIGKILL; an agent kills nobody before it has noticed a failure."""
    first = torchrun_report({0: 1, 1: -9, 2: -15}, root=1)
    assert told(report_of({"launcher.log": first})) == (Kind.DEAD_RANK, Cause.SIGNAL, {1})

    elsewhere = {"other.log": torchrun_report({4: 1, 5: -15}, root=4, host="n2")}  # perhaps earlier
    assert told(report_of({"launcher.log": first} | elsewhere))[2] == set()
    assert told(report_of({"launcher.log": torchrun_report({0: 1, 1: -9, 2: -9}, root=1)}))[2] == set()


def test_the_rank_that_its_watchdog_aborted_first_is_no_culprit() -> None:
    """T1: the agent ends all others with SIGTERM."""
    report = report_of({"launcher.log": torchrun_report({0: -6, 1: -15, 2: -15}, root=0), "rank0.log": timed_out(0, 41)})
    assert told(report) == (Kind.INSUFFICIENT_EVIDENCE, None, set())

    failed = {"launcher.log": torchrun_report({0: -6, 1: -15}, root=0), "rank0.log": illegal_access(0, "1129 14:23:02.000000")}
    assert told(report_of(failed)) == (Kind.DEAD_RANK, Cause.EXCEPTION, {0})


def test_a_rank_that_waited_like_all_others_has_survived_what_its_log_holds() -> None:
    """T1 and T8: an exception that was caught, and an error of a device after the wait was given up."""
    caught = TRACEBACK.format(exception="ValueError: no such metric") + timed_out(0, 41)
    aborted = timed_out(0, 41) + illegal_access(0, "1129 14:23:04.000000")
    for text in (caught, aborted):
        report = report_of({"rank0.log": text, "rank1.log": timed_out(1, 41), "rank2.log": "step 40\n"} | job(3))
        assert told(report) == (Kind.INSUFFICIENT_EVIDENCE, None, set())
        assert candidates(report) == {2}


def test_a_report_of_an_earlier_attempt_says_nothing_of_a_process_that_lives() -> None:
    report = report_of({"launcher.log": torchrun_report({0: -15, 1: -9}, root=1)} | job(2, rank0="S", rank1="S"))
    assert told(report)[2] == set()


def test_what_ray_lists_as_possible_causes_is_no_evidence() -> None:
    """C38."""
    boilerplate = (
        "(raylet) A worker died or was killed while executing a task. There are some potential root causes. "
        "(1) The process is killed by SIGKILL by OOM killer due to high memory usage.\n"
    )
    files = {"rank0.log": boilerplate + should_dump(0), "rank2.log": illegal_access(2, "1129 14:23:02.000000")}
    report = report_of(files | job(3))
    assert told(report) == (Kind.DEAD_RANK, Cause.EXCEPTION, {2})
    assert report.verdict is not None
    assert report.verdict.confidence is Confidence.SUPPORTED
