"""Facts about gloo's flight recorder (torch 2.13) on which the diagnosis relies, seen in real jobs."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.live.recorded.faults import FAULTS
from tests.live.recorded.names import DUMP_PREFIX

from pardbg.collectors.parsing.job_file import parse_job
from pardbg.watchdog.demo.processes import WORLD_SIZE

pytestmark = pytest.mark.live

PlantedJob = Callable[[str], Path]
RANKS = range(WORLD_SIZE)
every_fault = pytest.mark.parametrize("fault_name", [fault.name for fault in FAULTS])


def read_dump(folder: Path, rank: int) -> Any:
    return pickle.loads((folder / f"{DUMP_PREFIX}{rank}").read_bytes())


def of_world(dump: Any) -> list[Any]:
    return [entry for entry in dump["entries"] if entry["process_group"] == ("0", "default_pg")]


def in_flight(dump: Any) -> list[tuple[str, int, str]]:
    """Group, sequence number and name of all that is not retired."""
    return [
        (entry["process_group"][1], entry["collective_seq_id"], entry["profiling_name"])
        for entry in dump["entries"]
        if not entry["retired"]
    ]


@every_fault
def test_every_rank_leaves_a_dump_whose_entries_are_always_scheduled(planted_job: PlantedJob, fault_name: str) -> None:
    for rank in RANKS:
        dump = read_dump(planted_job(fault_name), rank)

        assert dump["version"] == "2.10"
        assert {entry["state"] for entry in dump["entries"]} == {"scheduled"}
        assert {entry["time_discovered_completed_ns"] for entry in dump["entries"]} == {None}


@every_fault
def test_group_configuration_is_nameless_and_empty(planted_job: PlantedJob, fault_name: str) -> None:
    for rank in RANKS:
        assert read_dump(planted_job(fault_name), rank)["pg_config"] == {"": {"name": "", "desc": "", "ranks": "[]"}}


@every_fault
def test_point_to_point_is_never_recorded(planted_job: PlantedJob, fault_name: str) -> None:
    for rank in RANKS:
        entries = read_dump(planted_job(fault_name), rank)["entries"]

        assert not any(entry["is_p2p"] or entry["p2p_seq_id"] for entry in entries)
        assert {entry["profiling_name"] for entry in entries} <= {"gloo:all_reduce", "gloo:broadcast", "gloo:barrier"}


@every_fault
def test_job_file_describes_four_ranks(planted_job: PlantedJob, fault_name: str) -> None:
    description = parse_job((planted_job(fault_name) / "job.json").read_bytes())

    assert description.job == f"demo-{fault_name}"
    assert [rank.rank for rank in description.ranks] == list(RANKS)
    assert all(rank.pid and rank.host and rank.state for rank in description.ranks)


def test_finished_operations_are_retired(planted_job: PlantedJob) -> None:
    for rank in RANKS:
        assert in_flight(read_dump(planted_job("healthy"), rank)) == []


def test_rank_that_stops_joining_has_nothing_in_flight(planted_job: PlantedJob) -> None:
    dumps = [read_dump(planted_job("stops-joining"), rank) for rank in RANKS]

    assert [in_flight(dump) for dump in dumps] == [
        [("default_pg", 15, "gloo:barrier")],
        [("default_pg", 15, "gloo:barrier")],
        [],
        [("default_pg", 15, "gloo:barrier")],
    ]
    assert of_world(dumps[2])[-1]["collective_seq_id"] == 14


def test_every_operation_has_a_call_site_of_its_own(planted_job: PlantedJob) -> None:
    newest = read_dump(planted_job("stops-joining"), 0)["entries"][-1]
    names = [frame["name"] for frame in newest["frames"] if frame["filename"].endswith("training.py")]

    assert names == ["save_checkpoint", "train", "run"]


def test_completed_counter_passes_an_operation_that_is_in_flight(planted_job: PlantedJob) -> None:
    """Work of one gloo group runs on two threads, so the counter is no proof that all before it is done."""
    for rank in RANKS:
        dump = read_dump(planted_job("other-op"), rank)
        stuck = next(entry for entry in of_world(dump) if not entry["retired"])

        assert stuck["collective_seq_id"] == 12
        assert dump["pg_status"]["0"]["last_completed_collective"] > stuck["op_id"]


def test_status_lists_only_groups_that_were_used(planted_job: PlantedJob) -> None:
    dumps = [read_dump(planted_job("subgroup-missing"), rank) for rank in RANKS]

    assert [sorted(dump["pg_status"]) for dump in dumps] == [["0", "1", "2"], ["0", "1", "2"], ["0", "1"], ["0"]]
    assert dumps[2]["pg_status"]["1"] == {
        "last_enqueued_collective": 1,
        "last_started_collective": -1,
        "last_completed_collective": -1,
    }


def test_groups_share_names_between_ranks_but_not_numbers(planted_job: PlantedJob) -> None:
    groups = [
        {entry["pg_id"]: entry["process_group"] for entry in read_dump(planted_job("healthy"), rank)["entries"]}
        for rank in RANKS
    ]

    assert groups == [
        {0: ("0", "default_pg"), 1: ("1", "tp"), 2: ("3", "dp"), 3: ("5", "control")},
        {0: ("0", "default_pg"), 1: ("1", "tp"), 2: ("4", "dp"), 3: ("5", "control")},
        {0: ("0", "default_pg"), 1: ("2", "tp"), 2: ("3", "dp"), 3: ("5", "control")},
        {0: ("0", "default_pg"), 1: ("2", "tp"), 2: ("4", "dp"), 3: ("5", "control")},
    ]


def test_pending_receive_is_invisible(planted_job: PlantedJob) -> None:
    dump = read_dump(planted_job("p2p"), 1)

    assert in_flight(dump) == []
    assert dump["pg_status"]["0"]["last_enqueued_collective"] == of_world(dump)[-1]["op_id"] == 14


def test_operation_number_betrays_the_send_that_was_not_issued(planted_job: PlantedJob) -> None:
    """P2P counts in ``op_id`` but not in the sequence number; the gap shows with the next collective."""
    newest = [of_world(read_dump(planted_job("p2p"), rank))[-1] for rank in RANKS]
    gaps = [entry["op_id"] - entry["collective_seq_id"] for entry in newest]

    assert [entry["collective_seq_id"] for entry in newest] == [14, 11, 14, 14]
    assert gaps == [4, 3, 4, 3]


def test_operation_that_failed_looks_finished(planted_job: PlantedJob) -> None:
    """Rank 2 has exited before its 4th operation of the group; rank 0's raised, and is retired like a completed one."""
    folder = planted_job("left-early-exit")
    newest = [read_dump(folder, rank)["entries"][-1] for rank in RANKS]

    assert (newest[0]["process_group"][1], newest[0]["collective_seq_id"], newest[0]["retired"]) == ("dp", 4, True)
    assert newest[2]["collective_seq_id"] == 3
    assert "Connection closed by peer" in (folder / "log_rank0.txt").read_text()
    assert parse_job((folder / "job.json").read_bytes()).ranks[2].exit_code == 0


def test_other_size_aborts_the_rank_whose_buffer_is_too_small(planted_job: PlantedJob) -> None:
    folder = planted_job("other-size")
    at_12 = [next(entry for entry in of_world(read_dump(folder, rank)) if entry["collective_seq_id"] == 12) for rank in RANKS]

    assert [entry["input_sizes"] for entry in at_12] == [[[256]], [[256]], [[128]], [[256]]]
    assert "Received data size doesn't match expected size" in (folder / "log_rank2.txt").read_text()
    assert parse_job((folder / "job.json").read_bytes()).ranks[2].exit_code == -6
