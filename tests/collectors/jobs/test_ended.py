"""Ranks without a living process: ended, silent, or perhaps hidden."""

import pytest
from tests.collectors.jobs.processes import (
    absences,
    make_census,
    make_process,
    make_silent,
    make_zombie,
    rank_environment,
    torchrun_world,
)

from pardbg.collectors.jobs.process import JobProcess
from pardbg.collectors.jobs.worlds import find_worlds
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.world import World

KILLED, EXITED_3 = 9, 3 << 8


def world_without(*missing: int, more: tuple[JobProcess, ...], attach: str = "auto") -> World:
    """A torchrun world of four with some of its processes replaced."""
    gone = {101 + rank for rank in missing}
    rest = [process for process in torchrun_world(PARDBG_ATTACH=attach) if process.pid not in gone]
    (world,) = find_worlds(make_census(*rest, *more))
    return world


def ended(world: World) -> list[tuple[int, int | None, int | None]]:
    return [(item.rank, item.pid, item.exit_code) for item in world.ended]


def test_ended_child_of_the_launcher_is_the_rank_that_is_missing() -> None:
    assert ended(world_without(2, more=(make_zombie(103, 100, KILLED),))) == [(2, 103, -9)]


def test_several_ended_children_are_the_missing_ranks_in_the_order_of_their_start() -> None:
    world = world_without(1, 3, more=(make_zombie(104, 100, KILLED), make_zombie(102, 100, EXITED_3)))
    assert ended(world) == [(1, 102, 3), (3, 104, -9)]


def test_when_their_numbers_differ_nobody_is_guessed() -> None:
    world = world_without(1, 3, more=(make_zombie(104, 100, KILLED),))
    assert ended(world) == [(1, None, None), (3, None, None)]


def test_ended_process_of_another_time_is_set_aside() -> None:
    assert ended(world_without(2, more=(make_zombie(103, 100, KILLED), make_zombie(9000, 100, EXITED_3)))) == [(2, 103, -9)]


def test_ended_process_that_is_no_child_of_who_started_the_others_is_none_of_them() -> None:
    assert ended(world_without(2, more=(make_zombie(103, 77, KILLED),))) == [(2, None, None)]


def test_ended_helper_of_the_launcher_is_no_rank() -> None:
    assert ended(world_without(2, more=(make_zombie(103, 100, KILLED, "nvidia-smi"),))) == [(2, None, None)]


def test_ended_shell_is_a_rank_where_shells_start_the_others() -> None:
    shells = [
        process
        for rank in range(2)
        for process in (
            make_process(10 + rank, 5, rank_environment(rank, 3), ("bash", "-c", "x")),
            make_process(20 + rank, 10 + rank, rank_environment(rank, 3), maps_torch=True),
        )
    ]
    launcher = make_process(5, 1, {}, ("python", "/bin/torchrun"), name="pt_elastic")
    (world,) = find_worlds(make_census(launcher, *shells, make_zombie(12, 5, EXITED_3, "bash")))
    assert ended(world) == [(2, 12, 3)]


def test_processes_whose_parents_are_outside_our_namespace_are_not_siblings() -> None:
    rank = make_process(10, 0, {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost"})
    (world,) = find_worlds(make_census(rank, make_zombie(11, 0, KILLED)))
    assert ended(world) == []


def test_silent_launcher_is_not_taken_for_a_rank_that_may_live() -> None:
    ranks = torchrun_world()[1:4]
    (world,) = find_worlds(make_census(make_silent(100, 1, "pt_elastic"), *ranks))
    assert ended(world) == [(3, None, None)]


def test_exit_code_that_the_kernel_hides_is_unknown() -> None:
    assert ended(world_without(2, more=(make_zombie(103, 100, 0, is_denied=True),))) == [(2, 103, None)]


def test_rank_without_any_process_has_ended() -> None:
    assert ended(world_without(2, more=())) == [(2, None, None)]


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
def test_on_a_loopback_address_all_ranks_belong_here_and_only_those_with_a_trace_have_ended(address: str) -> None:
    """Two containers may share one loopback: a rank that is not seen may live in the other."""
    rank = make_process(10, 1, {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": address})
    (unseen,) = find_worlds(make_census(rank))
    (killed,) = find_worlds(make_census(make_process(1, 0, {}), rank, make_zombie(11, 1, KILLED)))
    assert ended(unseen) == []
    assert [rank for rank, _, _ in ended(killed)] == [0]


def test_on_one_of_several_hosts_its_own_ranks_belong_here() -> None:
    environment = rank_environment(5, 8, LOCAL_RANK="1", LOCAL_WORLD_SIZE="4")
    (world,) = find_worlds(make_census(make_process(10, 1, environment)))
    assert [rank for rank, _, _ in ended(world)] == [4, 6, 7]


def test_without_a_local_size_nobody_is_expected() -> None:
    (world,) = find_worlds(make_census(make_process(10, 1, {"RANK": "1", "WORLD_SIZE": "3", "MASTER_ADDR": "a"})))
    assert world.ended == ()


def test_silent_child_of_the_launcher_is_the_rank_that_is_missing() -> None:
    world = world_without(2, more=(make_silent(103, 100),), attach="never")
    rank = next(rank for rank in world.ranks if rank.rank == 2)
    assert (rank.pid, rank.uid, rank.is_at_home, rank.recorder) == (103, 1000, True, {"PARDBG_ATTACH": "never"})
    assert (ended(world), absences(world.evidence)) == ([], [(2, "timed-out")])


def test_silent_process_elsewhere_makes_a_missing_rank_unknown_and_not_ended() -> None:
    world = world_without(2, more=(make_silent(500, 77),))
    assert (ended(world), absences(world.evidence)) == ([], [(2, "timed-out")])


def test_hidden_process_of_the_same_user_makes_a_missing_rank_unknown() -> None:
    world = world_without(2, more=(make_process(500, 77, {}, is_denied=True),))
    assert (ended(world), absences(world.evidence)) == ([], [(2, "denied")])


def test_hidden_process_of_another_user_does_not() -> None:
    assert ended(world_without(2, more=(make_process(500, 77, {}, is_denied=True, uid=1234),))) == [(2, None, None)]


@pytest.mark.parametrize(("local_size", "is_told"), [("1", False), ("", True)])
def test_what_could_not_be_seen_is_told_unless_all_ranks_are_accounted_for(local_size: str, *, is_told: bool) -> None:
    denied = Evidence(
        source=CollectorName.HOST,
        rank=None,
        observation=Absence(reason=AbsenceReason.DENIED, detail="3 Python processes"),
        origin="/proc",
    )
    process = make_process(10, 1, rank_environment(0, 1, LOCAL_WORLD_SIZE=local_size))
    (world,) = find_worlds(make_census(process, evidence=(denied,)))
    assert (denied in world.evidence) is is_told
