"""Who waited in what, by logs alone: watchdogs, detail mode, barriers, stores. Without recorders little is certain."""

import pytest

from pardbg.watchdog.model.names import Cause, Kind, Mismatch, Status
from pardbg.watchdog.model.report import Report
from tests.collectors.dumps import make_entry, outstanding
from tests.diagnosis.live_evidence import frame
from tests.diagnosis.log_files import candidates, job, report_of, stack, status, timed_out, told
from tests.diagnosis.test_hand_made import evidence_from

NOTHING: tuple[Kind, None, set[int]] = (Kind.INSUFFICIENT_EVIDENCE, None, set())
TOKENIZING = (
    frame("map", 300, "/opt/venv/lib/python3.11/site-packages/datasets/arrow_dataset.py"),
    frame("prepare", 30),
)


def sides(report: Report) -> list[tuple[tuple[int, ...], str, tuple[tuple[int, ...], ...]]]:
    assert report.verdict is not None
    assert report.verdict.first_divergence is not None
    return [(side.ranks, side.op, side.sizes) for side in report.verdict.first_divergence.sides]


def test_differing_sizes_under_one_number_are_a_divergence_without_a_culprit() -> None:
    """C23: rank 0 is further on, rank 1 is silent."""
    files = {
        "rank3.log": timed_out(3, 7219, "BROADCAST", 64) + status(3, 7220, 7218),
        "rank2.log": timed_out(2, 7219, "BROADCAST", 24_084_544) + status(2, 7219, 7218),
        "rank0.log": timed_out(0, 7221, "ALLREDUCE", 593_920),
        "rank1.log": "step 19\n",
    }
    report = report_of(files | job(4))

    assert told(report) == (Kind.DESYNC, None, set())
    assert candidates(report) == {2, 3}
    assert report.verdict is not None
    assert report.verdict.mismatch is Mismatch.SIZE
    assert sides(report) == [((2,), "broadcast", ((24_084_544,),)), ((3,), "broadcast", ((64,),))]
    assert "at or before collective 7219" in report.verdict.claim
    assert "the logs of rank 1 say nothing" in report.verdict.claim


def test_one_rank_ahead_in_a_broadcast_is_no_divergence() -> None:
    """C34: the root of a broadcast may finish alone."""
    files = {
        "rank0.log": timed_out(0, 5730, "BROADCAST") + status(0, 6464, 5729),
        "rank3.log": timed_out(3, 5729, "BROADCAST") + status(3, 6464, 5728),
    }
    assert told(report_of(files | job(4))) == NOTHING


@pytest.mark.parametrize(
    ("odd", "silent", "culprits"),
    [([7], [], {7}), ([6, 7], [], {6, 7}), ([7], [4, 5, 6], set()), ([2, 3, 4, 5, 6, 7], [], set())],
)
def test_a_clear_majority_is_needed_for_a_culprit_and_silent_ranks_may_be_on_any_side(
    odd: list[int], silent: list[int], culprits: set[int]
) -> None:
    """T3."""
    files = {
        f"rank{r}.log": timed_out(r, 41, numel=8 if r in odd and len(odd) < 4 else 1024 + r * (len(odd) > 4)) for r in range(8)
    }
    files |= {f"rank{rank}.log": "step\n" for rank in silent}
    report = report_of(files | job(8))
    assert told(report) == (Kind.DESYNC, None, culprits)


def test_another_operation_under_one_number_is_a_divergence() -> None:
    files = {"rank0.log": timed_out(0, 5), "rank1.log": timed_out(1, 5, "_ALLGATHER_BASE")}
    report = report_of(files | job(2))
    assert told(report) == (Kind.DESYNC, None, set())
    assert report.verdict is not None
    assert report.verdict.mismatch is Mismatch.OP


@pytest.mark.parametrize(
    ("op", "group"),
    [
        ("ALLTOALL_BASE", "PG ID 0 PG GUID 0(default_pg) "),  # may differ lawfully
        ("SEND", "PG ID 0 PG GUID 0(default_pg) "),  # numbers of pairs
        ("ALLREDUCE", ""),  # an old watchdog, which names no group
    ],
)
def test_what_cannot_be_compared_is_no_divergence(op: str, group: str) -> None:
    """T9 and T12: the old watchdog's number is that of a group that it does not name."""
    files = {
        "rank4.log": timed_out(4, 5, op, 8, group=group, group_rank=4 if group else 0),
        "rank5.log": timed_out(5, 5, op, 9, group=group, group_rank=5 if group else 1),
    }
    assert told(report_of(files | job(8))) == NOTHING


def test_a_group_number_of_one_process_is_not_taken_for_another_ones() -> None:
    """T9: PG ID counts in a process; the name behind GUID is everybody's."""
    files = {
        "rank0.log": timed_out(0, 5, numel=8, group="PG ID 3 PG GUID 7(DATA_PARALLEL_GROUP) ", group_rank=0),
        "rank1.log": timed_out(1, 5, numel=9, group="PG ID 3 PG GUID 8(DATA_PARALLEL_GROUP) ", group_rank=0),
    }
    assert told(report_of(files | job(4))) == NOTHING

    files["rank1.log"] = timed_out(1, 5, numel=9, group="PG ID 4 PG GUID 7(DATA_PARALLEL_GROUP) ", group_rank=1)
    assert told(report_of(files | job(4)))[0] is Kind.DESYNC


def test_a_shared_log_is_read_by_the_ranks_that_sign_it_and_not_by_their_group_ranks() -> None:
    """T9."""
    text = timed_out(6, 5, numel=8, group="PG ID 1 PG GUID 4(TP) ", group_rank=0)
    text += timed_out(7, 5, numel=9, group="PG ID 1 PG GUID 4(TP) ", group_rank=1)
    report = report_of({"job.log": text} | job(8))
    assert candidates(report) == {6, 7}


def test_timeouts_alone_name_nobody_and_say_which_logs_are_silent() -> None:
    """T1, T4 and T10."""
    files = {f"rank{rank}.log": timed_out(rank, 41) for rank in (0, 1, 3)} | {"rank2.log": "step 40\n"}
    report = report_of(files | job(4))
    assert told(report) == NOTHING
    assert candidates(report) == {2}
    assert report.verdict is not None
    assert report.verdict.victims == (0, 1, 3)
    assert report.unknowns


def test_a_rank_that_had_issued_nothing_more_while_all_others_waited_may_be_missing() -> None:
    behind = {f"rank{rank}.log": timed_out(rank, 41) for rank in (0, 1)} | {"rank2.log": status(2, 40, 40)}
    report = report_of(behind | job(3))
    assert told(report) == (Kind.MISSING_PARTICIPANT, None, set())  # only its stack could accuse it
    assert candidates(report) == {2}

    early = behind | {"rank2.log": status(2, 40, 40, at="1129 13:00:00.000000")}
    unfinished = behind | {"rank2.log": status(2, 40, 39)}
    elsewhere = behind | {"rank2.log": status(2, 40, 40) + timed_out(2, 3, group="PG ID 1 PG GUID 4(TP) ", group_rank=0)}
    for files in (early, unfinished, elsewhere):
        assert told(report_of(files | job(3))) == NOTHING


def test_a_rank_that_its_own_stack_shows_elsewhere_is_missing() -> None:
    files = {f"rank{rank}.log": timed_out(rank, 41) for rank in (0, 1)}
    report = report_of(files | job(3), stack(2, *TOKENIZING))
    assert told(report) == (Kind.MISSING_PARTICIPANT, Cause.DATA_LOADING, {2})

    own_line = stack(2, frame("load_batch", 12), frame("train", 40))  # which may wait in native code
    assert told(report_of(files | job(3), own_line)) == NOTHING


def test_recorders_outdo_timeouts() -> None:
    rings = {0: [make_entry(0), outstanding(1)], 1: [make_entry(0), outstanding(1)], 2: [make_entry(0)]}
    files = {"rank0.log": timed_out(0, 2, numel=8), "rank1.log": timed_out(1, 2, numel=9)}
    assert told(report_of(files | job(3), *evidence_from(rings)))[0::2] == (Kind.MISSING_PARTICIPANT, {2})


def fingerprint(rank: int, other: int, own_shape: str, other_shape: str, dtype: str = "BFloat16") -> str:
    def side(number: int, shape: str, kind: str) -> str:
        return (
            f"Rank {number} is running collective: CollectiveFingerPrint(SequenceNumber=2373, OpType=_ALLGATHER_BASE, "
            f"TensorShape=[{shape}], TensorDtypes={kind}, TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda))"
        )

    return (
        f"[rank{rank}]: RuntimeError: Detected mismatch between collectives on ranks. {side(rank, own_shape, 'BFloat16')}, "
        f"but {side(other, other_shape, dtype)}.Collectives differ in the following aspects: 	 Tensor shapes\n"
    )


@pytest.mark.parametrize(
    ("other", "dtype", "mismatch"), [("2048", "BFloat16", Mismatch.SIZE), ("256", "Float", Mismatch.DTYPE)]
)
def test_detail_mode_tells_both_sides(other: str, dtype: str, mismatch: Mismatch) -> None:
    """C10."""
    report = report_of({"rank0.log": fingerprint(0, 1, "256", other, dtype)} | job(2))
    assert told(report) == (Kind.DESYNC, None, set())
    assert candidates(report) == {0, 1}
    assert report.verdict is not None
    assert report.verdict.mismatch is mismatch
    assert report.verdict.first_divergence is not None
    assert report.verdict.first_divergence.seq == 2373


def test_fingerprints_of_a_smaller_group_name_no_global_ranks() -> None:
    """T9: rank 4 signs, and calls itself 0."""
    text = fingerprint(0, 1, "256", "2048").replace("[rank0]:", "[rank4]:")
    assert candidates(report_of({"job.log": text} | job(8))) == set()


BARRIER = "[rank0]: RuntimeError: [Rank 0]: Ranks 4, 5, 6, 7 failed to pass monitoredBarrier in 2000000 ms\n"
REACHED = "[rank3]: Rank 3 successfully reached monitoredBarrier but received errors while waiting for send/recv from rank 0\n"


def test_a_rank_that_had_issued_less_by_its_own_count_is_who_the_others_wait_for() -> None:
    told_to_dump = (
        "[rank2]:[E1129 14:23:02.0 x.cpp:1484] [PG ID 0 PG GUID 0(default_pg) Rank 2] Received a dump signal due to a "
        "collective timeout from  rank 0 and we. Last enqueued NCCL work: {0}, last completed NCCL work: {0}.\n"
    )
    others = {f"rank{rank}.log": timed_out(rank, 41) for rank in (0, 1, 3)}
    report = report_of(others | {"rank2.log": told_to_dump.format(40)} | job(4))
    assert told(report) == (Kind.MISSING_PARTICIPANT, None, {2})
    assert told(report_of(others | {"rank2.log": told_to_dump.format(41)} | job(4))) == NOTHING
    apart = others | {"rank3.log": timed_out(3, 43), "rank2.log": told_to_dump.format(40)}
    assert told(report_of(apart | job(4))) == (Kind.MISSING_PARTICIPANT, None, set())


def test_one_size_of_many_is_to_blame_where_all_ranks_have_spoken_each_under_its_own_number() -> None:
    files = {f"rank{rank}.log": timed_out(rank, 12, numel=16 if rank == 3 else 8, group="PG 1 ") for rank in range(8)}
    assert told(report_of(files | job(8))) == (Kind.DESYNC, None, {3})
    assert told(report_of(files)) == (Kind.DESYNC, None, set())  # there may be more of them
    assert told(report_of(files | job(9))) == (Kind.DESYNC, None, set())


def test_a_monitored_barrier_that_names_ranks_without_logs_tells_how_large_the_job_is() -> None:
    assert told(report_of({"rank0.log": BARRIER}))[2] == {4, 5, 6, 7}


def test_a_monitored_barrier_names_who_did_not_come() -> None:
    """C20."""
    report = report_of({"rank0.log": BARRIER} | job(8))
    assert told(report) == (Kind.MISSING_PARTICIPANT, None, {4, 5, 6, 7})
    assert report.verdict is not None
    assert report.verdict.victims == (0, 1, 2, 3)

    assert told(report_of({"rank3.log": REACHED} | job(4)))[2] == set()  # rank 0 only coordinates
    both = report_of({"rank0.log": BARRIER, "rank3.log": REACHED} | job(8))  # rank 0 failed since others did not come
    assert told(both)[2] == {4, 5, 6, 7}


def test_whoever_waits_elsewhere_is_not_accused_of_missing_a_barrier() -> None:
    report = report_of({"rank0.log": BARRIER, "rank4.log": timed_out(4, 3)} | job(8))
    assert told(report) == (Kind.MISSING_PARTICIPANT, None, set())
    assert candidates(report) == {4, 5, 6, 7}


def unique_id(rank: int) -> str:
    return (
        f"[rank{rank}]: torch.distributed.DistBackendError: [{rank}] is setting up NCCL communicator and retrieving "
        "ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: Socket Timeout\n"
    )


def test_a_first_collective_that_was_never_met_is_a_symptom() -> None:
    """C46: busy, rank 0 is waited for and not accused; not busy, nothing is known."""
    files = {f"rank{rank}.log": unique_id(rank) for rank in (1, 2, 3)}
    busy = report_of(files | job(4), stack(0, *TOKENIZING))
    assert told(busy) == (Kind.SLOW_PHASE, Cause.DATA_LOADING, set())
    assert busy.status is Status.SLOW
    assert busy.verdict is not None
    assert [subject.rank for subject in busy.verdict.waiting_for] == [0]

    unknown = report_of(files | job(4))
    assert told(unknown) == (Kind.INIT_STUCK, Cause.STORE_WAIT, set())
    assert candidates(unknown) == {0}


def heartbeat(rank: int, pending: int) -> str:
    return (
        f"[rank{rank}]:[F1129 15:00:00.000000 ProcessGroupNCCL.cpp:1300] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] "
        "ProcessGroupNCCL's watchdog got stuck for 600 seconds without making progress in monitoring enqueued collectives, "
        f"workMetaList_.size()={pending}\n"
    )


def test_a_heartbeat_is_never_the_cause() -> None:
    """C52: at most it shows who is behind."""
    report = report_of({f"rank{rank}.log": heartbeat(rank, count) for rank, count in enumerate((84, 103, 103))} | job(3))
    assert told(report) == NOTHING
    assert candidates(report) == {0}


def test_standing_still_after_the_training_is_a_matter_of_leaving() -> None:
    """C53; without the word that it is over it would be a hang."""
    over = "2026-11-29 14:40:00,120 INFO Training completed. Do not forget to share your model\n"
    files = {"rank0.log": over + heartbeat(0, 2), "rank1.log": heartbeat(1, 2)}
    assert told(report_of(files | job(2))) == (Kind.TEARDOWN_STUCK, None, {0, 1})

    assert told(report_of(files | {"rank0.log": heartbeat(0, 2)} | job(2))) == NOTHING
    early = "2026-11-29 15:40:00,120 INFO Training completed.\n"  # it ended well after the complaint
    assert told(report_of(files | {"rank0.log": heartbeat(0, 2) + early} | job(2))) == NOTHING


OVER = "2026-11-29 14:12:00,120 INFO Training finished. Total time 0:41:20\n"
STEP = "2026-11-29 14:12:30,120 INFO step 107/5000 loss 2.11\n"


def test_who_says_that_the_training_is_over_while_others_wait_is_the_one_to_look_at() -> None:
    """He left early, or works on alone: the others wait in an operation of the training."""
    waits = {f"rank{rank}.log": timed_out(rank, 41) for rank in (1, 2, 3)}
    for more in ("", "2026-11-29 14:12:30,120 INFO eval batch 10/4000\n"):
        report = report_of(waits | {"rank0.log": OVER + more} | job(4))
        assert told(report) == NOTHING
        assert candidates(report) == {0}
        assert [len(finding.culprits) for finding in report.findings] == [0]
    beats = {f"rank{rank}.log": heartbeat(rank, 2) for rank in (1, 2, 3)}
    assert told(report_of(beats | {"rank0.log": OVER} | job(4)))[2] == set()


def test_the_end_of_a_stage_or_of_an_earlier_run_is_no_end() -> None:
    for more in (STEP, "+ torchrun finetune.py\n" + STEP):
        files = {f"rank{rank}.log": OVER + more + heartbeat(rank, 2) for rank in range(2)}
        assert told(report_of(files | job(2))) == NOTHING
    shared = "".join(f"[rank{rank}]: {line}" for line in (OVER, STEP) for rank in range(2)) + heartbeat(0, 2) + heartbeat(1, 2)
    assert told(report_of({"train.log": shared} | job(2))) == NOTHING
    late = f"[rank0]: {OVER}[rank1]: {STEP}[rank1]: {OVER}" + heartbeat(0, 2) + heartbeat(1, 2)
    assert told(report_of({"train.log": late} | job(2))) == (Kind.TEARDOWN_STUCK, None, {0, 1})


def test_after_the_training_all_are_stuck_in_a_barrier_only_where_all_have_come_to_it() -> None:
    def all_over(op: str, numel: int, ranks: int = 3) -> dict[str, str]:
        return {f"rank{rank}.log": OVER + timed_out(rank, 41, op, numel) for rank in range(ranks)}

    for op, numel in (("BARRIER", 0), ("ALLREDUCE", 1)):
        assert told(report_of(all_over(op, numel) | job(3))) == (Kind.TEARDOWN_STUCK, None, {0, 1, 2})
        assert told(report_of(all_over(op, numel, 2) | job(3))) == NOTHING
        assert told(report_of(all_over(op, numel))) == NOTHING  # of how many ranks, nobody knows
    assert told(report_of(all_over("ALLREDUCE", 1024) | job(3))) == NOTHING


def test_who_prints_the_timeout_of_a_dispatch_is_a_victim() -> None:
    """C92."""
    files = {f"rank{rank}.log": "DeepEP timeout check failed: rank = 6, thread = 5, value = 1024)\n" for rank in range(3)}
    inner = frame("compile", 80, "/opt/venv/lib/python3.11/site-packages/triton/compiler/compiler.py")
    report = report_of(files | job(4), stack(3, inner, frame("warm_up", 9)))
    assert told(report)[0] is Kind.SLOW_PHASE
    assert told(report)[2] == set()
    assert report.verdict is not None
    assert [subject.rank for subject in report.verdict.waiting_for] == [3]
    assert report.verdict.victims == (0, 1, 2)

    assert told(report_of(files | job(4))) == NOTHING


def test_a_job_that_returned_in_peace_is_not_accused_for_what_its_logs_grumble() -> None:
    ended = {
        "job.json": '{"job": "j", "world_size": 2, "ranks": ['
        + ", ".join(f'{{"rank": {rank}, "pid": 1, "process": {{"state": "gone", "exit_code": 0}}}}' for rank in range(2))
        + "]}"
    }
    assert report_of({"rank0.log": heartbeat(0, 1)} | ended).verdict is None


def test_a_quiet_log_is_no_finding() -> None:
    assert report_of({"rank0.log": "[rank0]: step 1\n[rank0]: step 2\n"} | job(1)).verdict is None


def test_who_has_fewest_to_look_after_is_known_only_among_three_and_alone() -> None:
    for counts in ((84, 103), (84, 84, 103)):
        report = report_of({f"rank{rank}.log": heartbeat(rank, count) for rank, count in enumerate(counts)} | job(len(counts)))
        assert candidates(report) == set()


def test_a_wait_from_before_the_end_of_the_training_is_no_matter_of_leaving() -> None:
    over = "2026-11-29 14:40:00,120 INFO Training completed.\n"
    early = heartbeat(1, 2).replace("1129 15:00", "1129 14:30")
    files = {"rank0.log": over + heartbeat(0, 2), "rank1.log": early}
    assert told(report_of(files | job(2))) == NOTHING


@pytest.mark.parametrize(
    "waits",
    [
        pytest.param([timed_out(0, 41), timed_out(1, 42)], id="two operations"),
        pytest.param(
            [timed_out(rank, 41, group="PG ID 1 PG GUID 4(TP) ", group_rank=rank) for rank in range(2)], id="part of the ranks"
        ),
    ],
)
def test_a_stack_elsewhere_accuses_only_where_all_others_wait_in_one_operation_of_all(waits: list[str]) -> None:
    files = {f"rank{rank}.log": text for rank, text in enumerate(waits)}
    assert told(report_of(files | job(3), stack(2, *TOKENIZING)))[2] == set()
