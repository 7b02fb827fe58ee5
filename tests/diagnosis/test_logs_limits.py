"""What a rule of logs must not conclude where one thing is missing that it stands on. Each comes of a mutant that lived."""

from pardbg.watchdog.graph.log_facts import SET_UP_BEGAN, SET_UP_DONE, LogFact, LogFacts
from pardbg.watchdog.graph.log_waits import find_behind, find_split
from pardbg.watchdog.model.log_event import CollectiveTimeout, CommunicatorStep, GroupName, GroupStatus, NcclProcess
from tests.diagnosis.log_files import TRACEBACK, blamed, candidates, job, nccl, report_of, setting_up, timed_out, told

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
    assert told(report_of({"nccl.log": text} | job(4)))[2] == set()


def test_memory_that_runs_out_after_the_set_up_is_no_failure_of_it() -> None:
    text = "".join(setting_up("a", rank, 2, done=True) for rank in range(2)) + nccl("a", 101, 0, NO_MEMORY, "WARN")
    assert blamed([report_of({"nccl.log": text} | job(2))]) == set()


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
