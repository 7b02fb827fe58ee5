"""What a rule of logs must not conclude where one thing is missing that it stands on. Each comes of a mutant that lived."""

import pytest
from msgspec.structs import replace

from pardbg.watchdog.graph.log_facts import SET_UP_BEGAN, SET_UP_DONE, LogFact, LogFacts
from pardbg.watchdog.graph.log_waits import find_behind, find_split, waits_of
from pardbg.watchdog.model.log_event import CollectiveTimeout, CommunicatorStep, GroupName, GroupStatus, NcclProcess
from pardbg.watchdog.model.names import Cause, Kind
from tests.diagnosis.log_files import (
    TRACEBACK,
    blamed,
    candidates,
    job,
    nccl,
    report_of,
    setting_up,
    should_dump,
    timed_out,
    told,
)

NO_MEMORY = "Cuda failure 2 'out of memory'"
WORLD = GroupName(name="0", desc="default_pg")


def wait(seq: int, *, numel: int | None = 8, at_ns: int | None = 1_000) -> CollectiveTimeout:
    return CollectiveTimeout(group=WORLD, seq=seq, op="all_reduce", numel_in=numel, at_ns=at_ns)


def step(rank: int, word: str) -> LogFact:
    process = NcclProcess(host="a", pid=100 + rank, device=0)
    return LogFact(rank, "a", CommunicatorStep(process=process, id="0x1", comm_rank=rank, size=2, step=word), "nccl.log")


def test_place_in_a_communicator_that_is_not_the_world_is_no_global_rank_even_if_only_one_has_it() -> None:
    """T9."""
    text = setting_up("a", 1, 2, pid=201) + nccl("a", 201, 0, NO_MEMORY, "WARN")
    assert blamed([report_of({"nccl.log": text, "rank0.log": should_dump(0)} | job(4))]) == set()


def test_memory_that_runs_out_after_the_set_up_is_no_failure_of_it() -> None:
    text = "".join(setting_up("a", rank, 2, done=True) for rank in range(2)) + nccl("a", 101, 0, NO_MEMORY, "WARN")
    assert blamed([report_of({"nccl.log": text, "rank0.log": should_dump(0)} | job(2))]) == set()


def test_set_up_is_open_only_where_it_was_not_completed_and_no_line_was_cut_off() -> None:
    facts = (step(0, SET_UP_BEGAN), step(1, SET_UP_BEGAN), step(1, SET_UP_DONE))
    assert LogFacts(facts).setting_up == {0}
    assert LogFacts(facts, is_cut=True).setting_up == frozenset()


def test_rank_beyond_the_world_is_nobodys() -> None:
    report = report_of({"job.log": timed_out(0, 41) + "[rank9]: " + TRACEBACK.format(exception="ValueError: x")} | job(2))
    assert {0, 1, None} >= blamed([report]) | candidates(report)


def test_nobody_is_behind_where_a_wait_has_no_time() -> None:
    status = LogFact(2, "a", GroupStatus(group=WORLD, enqueued=40, completed=40, at_ns=2_000), "rank2.log")
    waits = {0: wait(41), 1: wait(41)}
    assert find_behind(LogFacts((status,)), WORLD, waits) == (2,)
    assert find_behind(LogFacts((status,)), WORLD, waits | {1: wait(41, at_ns=None)}) == ()


def test_size_that_is_not_told_is_no_difference() -> None:
    assert find_split(WORLD, {0: wait(5), 1: wait(5, numel=9)}) is not None
    assert find_split(WORLD, {0: wait(5), 1: wait(5, numel=None)}) is None


def test_siblings_of_one_name_are_not_compared() -> None:
    """T9: two members with the same number in a group are members of two."""
    files = {
        f"rank{rank}.log": timed_out(rank, 5, numel=rank + 8, group="PG ID 1 PG GUID 7(TP) ", group_rank=0) for rank in (0, 4)
    }
    assert candidates(report_of(files | job(8))) & {0, 4} == set()


def test_two_against_one_are_no_majority() -> None:
    """T3."""
    files = {f"rank{rank}.log": timed_out(rank, 41, numel=8 if rank == 2 else 1024) for rank in range(3)}
    report = report_of(files | job(3))
    assert (told(report)[2], candidates(report)) == (set(), {0, 1, 2})


def test_the_earliest_number_that_differs_counts() -> None:
    """T2."""
    split = find_split(WORLD, {0: wait(5), 1: wait(5, numel=9), 2: wait(3), 3: wait(3, numel=7)})
    assert split is not None
    assert (split.seq, split.elsewhere) == (3, (0, 1))


def test_of_a_group_that_is_not_the_world_nobody_is_accused() -> None:
    waits = {rank: wait(5, numel=9 if rank == 3 else 8) for rank in range(4)}
    splits = [find_split(group, waits) for group in (WORLD, GroupName(name="7", desc="DP"))]
    assert [split and split.minority(4) for split in splits] == [(3,), ()]


def test_numbers_of_transfers_are_not_compared() -> None:
    sends = tuple(LogFact(rank, "a", replace(wait(5), op="send"), "") for rank in range(2))
    assert waits_of(LogFacts(sends)) == {}


def test_failed_completion_is_the_networks_only_where_retries_ran_out() -> None:
    failed = "NET/IB : Got completion from peer 10.0.0.3<4000> with error {}, opcode 1, len 0, vendor err 129"
    reports = [report_of({"nccl.log": nccl("n1", 100, 0, failed.format(code), "WARN")} | job(4)) for code in (12, 5)]
    assert [told(report)[1] for report in reports] == [Cause.NETWORK, None]


BARRIER = "RuntimeError: [Rank 0]: Ranks 1, 2 failed to pass monitoredBarrier in 2000000 ms\n"
PORT = "NET/IB : Got async event : port error"
RAISED = {"rank3.log": TRACEBACK.format(exception="ValueError: bad sample")}


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"rank0.log": f"[rank0]: {BARRIER}"}, id="barrier"),
        pytest.param(
            {f"rank{rank}.log": timed_out(rank, 41, numel=8 if rank == 6 else 1024) for rank in (0, 1, 2, 4, 5, 6)}, id="sizes"
        ),
        pytest.param({"rank0.log": nccl("a", 100, 0, PORT, "WARN") + should_dump(0)}, id="port"),
    ],
)
def test_first_error_of_its_own_is_all_that_is_told(files: dict[str, str]) -> None:
    report = report_of(files | RAISED | job(7))
    assert told(report) == (Kind.DEAD_RANK, Cause.EXCEPTION, {3})
    assert blamed([report]) == {3}


def test_ranks_that_a_barrier_of_a_smaller_group_misses_are_no_global_ones() -> None:
    """T9: rank 4 signs, and calls itself 0."""
    assert blamed([report_of({"job.log": f"[rank4]: {BARRIER}"} | job(8))]) == set()


def test_only_rank_zero_of_a_barrier_knows_who_is_missing() -> None:
    hearsay = (
        "[rank3]: Rank 3 successfully reached monitoredBarrier but received errors while waiting for send/recv from rank 0\n"
    )
    report = report_of({"rank0.log": f"[rank0]: {BARRIER}", "rank3.log": hearsay} | job(4))
    assert told(report)[2] == {1, 2}
