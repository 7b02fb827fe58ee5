"""The final states of each fault have the form that its kind claims. They are not drawn: these tests check that they follow."""

from collections.abc import Iterator
from typing import Any

import pytest

from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.scenario import SimulatedJob, simulate

Entry = dict[str, Any]


def job_of(fault: str, **options: Any) -> SimulatedJob:
    return simulate(Recipe(fault=fault, **options))


def pending(job: SimulatedJob, rank: int) -> list[Entry]:
    """Outstanding operations, without the members of finished coalesced groups."""
    entries = job.dumps[rank]["entries"]
    closed = {
        (entry["pg_id"], entry["p2p_seq_id"])
        for entry in entries
        if entry["profiling_name"].endswith("coalesced") and entry["retired"]
    }
    return [entry for entry in entries if not entry["retired"] and (entry["pg_id"], entry["p2p_seq_id"]) not in closed]


def key(entry: Entry) -> tuple[str, int]:
    return entry["process_group"][0], entry["collective_seq_id"]


def metrics(entries: list[Entry]) -> list[Entry]:
    """The operations that faults add."""
    return [entry for entry in entries if any("/app/metrics.py" in frame["filename"] for frame in entry["frames"])]


def where(entry: Entry) -> tuple[str, int]:
    return entry["frames"][2]["name"], entry["frames"][2]["line"]


def members(job: SimulatedJob, group_name: str) -> list[int]:
    return [rank for rank, dump in job.dumps.items() if group_name in dump["pg_config"]]


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
@pytest.mark.parametrize("fault", ["missing-participant", "missing-late-group", "missing-in-first-step", "two-faults"])
def test_only_missing_ranks_have_nothing_outstanding(fault: str, backend: str) -> None:
    job = job_of(fault, backend=backend)

    idle = tuple(rank for rank in job.dumps if not pending(job, rank))

    assert idle == job.truth.culprits


def test_hang_cascades_over_every_axis() -> None:
    job = job_of("missing-participant")

    waited_in = {entry["process_group"][1] for rank in job.dumps for entry in pending(job, rank)[:1]}

    assert waited_in >= {"TENSOR_MODEL_PARALLEL_GROUP", "PIPELINE_MODEL_PARALLEL_GROUP", "EXPERT_MODEL_PARALLEL_GROUP"}


def test_all_but_the_busy_rank_are_idle() -> None:
    job = job_of("idle-majority")

    assert [len(pending(job, rank)) for rank in job.dumps if rank not in job.truth.culprits] == [1]
    assert all(not pending(job, rank) for rank in job.truth.culprits)


def test_all_members_entered_what_a_stuck_communicator_runs() -> None:
    job = job_of("comm-stuck")
    stuck = [metrics(pending(job, rank)) for rank in job.dumps]
    group = {key(entry) for entries in stuck for entry in entries}

    assert len(group) == 1
    assert [rank for rank, entries in enumerate(stuck) if entries] == members(job, next(iter(group))[0])


def test_several_matching_groups_are_outstanding_on_every_rank() -> None:
    job = job_of("multi-comm-deadlock")

    waiting = {rank: {key(entry) for entry in metrics(pending(job, rank))} for rank in job.dumps}

    assert all(len(keys) == 2 for keys in waiting.values())
    for group, seq in set().union(*waiting.values()):
        assert [rank for rank, keys in waiting.items() if (group, seq) in keys] == members(job, group)


def test_others_completed_the_front_of_a_stuck_device() -> None:
    for fault in ("device-stuck", "device-stuck-unreported"):
        job = job_of(fault)
        (culprit,) = job.truth.culprits
        front = pending(job, culprit)[0]
        peers = [rank for rank in members(job, front["process_group"][0]) if rank != culprit]

        same = [entry for rank in peers for entry in job.dumps[rank]["entries"] if key(entry) == key(front)]

        assert [entry["state"] for entry in same] == ["completed"] * len(peers)


def test_receiver_of_a_finished_broadcast_still_queues_behind_another_group() -> None:
    job = job_of("broadcast-root-ahead")
    states: dict[tuple[str, int], dict[int, str]] = {}
    for rank, dump in job.dumps.items():
        for entry in dump["entries"]:
            if entry["profiling_name"] == "nccl:broadcast" and entry["process_group"][1] == "undefined":
                states.setdefault(key(entry), {})[rank] = entry["state"]
    ((_, by_rank),) = states.items()
    (behind,) = (rank for rank, state in by_rank.items() if state == "scheduled")

    assert sorted(by_rank.values()) == ["completed", "completed", "scheduled"]
    assert pending(job, behind)[0]["profiling_name"] == "nccl:all_reduce"


@pytest.mark.parametrize(
    ("fault", "field"),
    [
        ("desync-op", "profiling_name"),
        ("desync-size", "input_sizes"),
        ("desync-dtype", "input_dtypes"),
        ("desync-skipped", "input_sizes"),
        ("desync-swapped", "input_sizes"),
    ],
)
def test_exactly_the_culprit_differs_at_the_first_divergence(fault: str, field: str) -> None:
    job = job_of(fault)
    (culprit,) = job.truth.culprits
    ours = metrics(pending(job, culprit))[0]
    others = [entry for rank in job.dumps if rank != culprit for entry in pending(job, rank) if key(entry) == key(ours)]

    assert len(others) == 3
    assert len({str(entry[field]) for entry in others}) == 1
    assert str(others[0][field]) != str(ours[field])


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
@pytest.mark.parametrize(("fault", "delay"), [("desync-extra", 3), ("desync-skipped-call-site", 2)])
def test_divergence_by_call_site_blocks_only_later(fault: str, delay: int, backend: str) -> None:
    job = job_of(fault, backend=backend)
    (culprit,) = job.truth.culprits
    blocked = pending(job, culprit)[0]
    group, block_seq = key(blocked)
    sites: dict[int, dict[int, tuple[str, int]]] = {}
    for rank, dump in job.dumps.items():
        for entry in dump["entries"]:
            if entry["process_group"][0] == group:
                sites.setdefault(entry["collective_seq_id"], {})[rank] = where(entry)

    diverged = [seq for seq, by_rank in sorted(sites.items()) if len(set(by_rank.values())) > 1]

    assert diverged == list(range(block_seq - delay, block_seq + 1))
    assert len({by_rank for rank, by_rank in sites[diverged[0]].items() if rank != culprit}) == 1


def test_half_of_a_group_stands_against_the_other_half() -> None:
    job = job_of("desync-even-split")
    names = [metrics(pending(job, rank))[0]["profiling_name"] for rank in job.truth.candidates]

    assert names.count("nccl:all_reduce") == names.count("nccl:_all_gather_base") == len(names) // 2


def orders(job: SimulatedJob, ranks: Iterator[int]) -> dict[int, list[str]]:
    return {rank: [entry["process_group"][0] for entry in metrics(job.dumps[rank]["entries"])] for rank in ranks}


def test_culprit_alone_enqueued_the_two_groups_in_the_other_order() -> None:
    job = job_of("order-inversion-enqueued")
    (culprit,) = job.truth.culprits
    group = metrics(job.dumps[culprit]["entries"])[1]["process_group"][0]

    by_rank = orders(job, iter(members(job, group)))

    assert by_rank.pop(culprit) == ["0", group]
    assert set(map(tuple, by_rank.values())) == {(group, "0")}
    assert len(metrics(pending(job, culprit))) == 2


def test_culprit_holds_other_members_under_the_same_names() -> None:
    job = job_of("group-mismatch")
    (culprit,) = job.truth.culprits
    last = max(map(int, job.dumps[culprit]["pg_config"]))

    views = {rank: dump["pg_config"].get(str(last), {}).get("ranks") for rank, dump in job.dumps.items()}

    assert views.pop(culprit) != str(list(range(16)))
    assert set(views.values()) == {str(list(range(16)))}


@pytest.mark.parametrize("fault", ["p2p-deadlock", "p2p-deadlock-ring"])
def test_every_rank_of_a_p2p_deadlock_waits_in_a_send_first(fault: str) -> None:
    job = job_of(fault)

    assert all("send" in pending(job, rank)[0]["profiling_name"] for rank in job.truth.culprits)


def test_unmatched_peer_waits_in_communication() -> None:
    job = job_of("p2p-unmatched")
    (culprit,) = job.truth.culprits

    assert pending(job, culprit)
    assert "recv 0<-1" in [
        pending(job, rank)[0]["profiling_name"].removeprefix("nccl:") for rank in job.dumps if rank != culprit
    ]


def test_members_of_finished_coalesced_groups_stay_scheduled() -> None:
    job = job_of("healthy-coalesced-pipeline")
    entries = [entry for dump in job.dumps.values() for entry in dump["entries"]]

    assert {entry["state"] for entry in entries if entry["is_p2p"]} == {"scheduled"}
    assert {entry["state"] for entry in entries if entry["profiling_name"] == "nccl:coalesced"} == {"completed"}


def test_recorder_that_is_off_says_nothing_at_all() -> None:
    job = job_of("recorder-off")

    assert [rank for rank, dump in job.dumps.items() if not dump["pg_status"] and not dump["entries"]] != []


def test_wrapped_ring_has_lost_the_operation_but_counts_it() -> None:
    job = job_of("ring-wrapped")
    (short,) = (rank for rank, dump in job.dumps.items() if len(dump["entries"]) == 3)
    front = next(metrics(pending(job, rank))[0] for rank in job.dumps if rank != short and metrics(pending(job, rank)))
    group, seq = key(front)
    local_id = str(
        next(entry["pg_id"] for entry in job_of("healthy").dumps[short]["entries"] if entry["process_group"][0] == group)
    )

    assert not metrics(job.dumps[short]["entries"])
    assert job.dumps[short]["pg_status"][local_id]["last_enqueued_collective"] >= seq


def test_skewed_rings_start_at_different_places() -> None:
    job = job_of("healthy-skewed-windows")

    first = {dump["entries"][0]["record_id"] for dump in job.dumps.values()}

    assert min(first) > 0
    assert len(first) > 8


def test_expert_sizes_add_up_over_the_group() -> None:
    job = job_of("healthy")
    received: dict[tuple[str, int], list[int]] = {}
    for dump in job.dumps.values():
        for entry in dump["entries"]:
            if entry["profiling_name"] == "nccl:all_to_all" and entry["input_sizes"] == [[2048, 5120]]:
                received.setdefault(key(entry), []).append(entry["output_sizes"][0][0])

    assert {sum(sizes) for sizes in received.values()} == {2 * 2048}
    assert any(len(set(sizes)) > 1 for sizes in received.values())


def test_dead_rank_is_gone_and_leaves_no_dump() -> None:
    job = job_of("dead-rank")
    (culprit,) = job.truth.culprits

    exits = {entry["rank"]: (entry["process"]["state"], entry["process"]["exit_code"]) for entry in job.job["ranks"]}

    assert culprit not in job.dumps
    assert exits.pop(culprit) == ("gone", -9)
    assert set(exits.values()) == {("gone", -15)}


def test_stack_of_the_culprit_shows_what_it_does_and_the_others_wait() -> None:
    job = job_of("missing-participant-checkpoint")
    (culprit,) = job.truth.culprits

    top = {rank: stack[0]["frames"][0]["name"] for rank, stack in job.stacks.items()}

    assert top.pop(culprit) == "_write_record"
    assert set(top.values()) == {"synchronize"}
