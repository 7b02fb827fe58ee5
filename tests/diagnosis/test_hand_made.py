"""Verdicts on small hand-made dumps: what testers found, each as the kind it stands for."""

import json
from collections.abc import Iterable, Mapping

from pardbg.collectors.parsing.flight_recorder import parse_flight_recorder
from pardbg.collectors.parsing.job_file import parse_job
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence, FlightRecording
from pardbg.watchdog.model.names import CollectorName, Confidence, Edit, Kind, Mismatch, Status
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.store.view import EvidenceView
from tests.collectors.dumps import Entry, gloo, make_dump, make_entry, outstanding, pickled
from tests.diagnosis.diagnosing import WHEN

WORLD = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}}
PIPE = {"1": {"name": "1", "desc": "PIPELINE_MODEL_PARALLEL_GROUP", "ranks": "[0, 1, 2, 3]"}}


def evidence_from(rings: Mapping[int, Iterable[Entry]], **changes: object) -> list[Evidence]:
    """One dump a rank."""
    keys = {"pg_config": WORLD, **changes}
    dumps = {rank: parse_flight_recorder(pickled(make_dump(ring, **keys))) for rank, ring in rings.items()}
    return [
        Evidence(
            source=CollectorName.FLIGHT_RECORDER,
            rank=rank,
            observation=FlightRecording(recording=recording),
            origin=f"rank_{rank}",
        )
        for rank, recording in dumps.items()
    ]


def report_of(rings: Mapping[int, Iterable[Entry]], **changes: object) -> Report:
    """Diagnoses one dump a rank."""
    return judge(EvidenceView.of(evidence_from(rings, **changes)), Circumstances(decided_at=WHEN))


def blamed(report: Report) -> set[int | None]:
    return {subject.rank for finding in (*report.findings, *report.set_aside) for subject in finding.culprits}


def transfer(number: int, name: str, *, done: bool) -> Entry:
    make = make_entry if done else outstanding
    return make(
        number,
        profiling_name=f"nccl:{name}",
        is_p2p=True,
        pg_id=1,
        process_group=("1", PIPE["1"]["desc"]),
        p2p_seq_id=number + 1,
    )


def step(rank: int, number: int, *, done: bool, skips_world: bool = False) -> list[Entry]:
    """World all_reduce, then the transfer from rank 0 to rank 1; five records a step."""
    first = number * 5
    make = make_entry if done else outstanding
    entries = [] if skips_world else [make(first, collective_seq_id=number + 1)]
    if rank in {0, 1}:
        entries.append(transfer(first + 1, "send 0->1" if rank == 0 else "recv 1<-0", done=done))
    return entries


def test_rank_that_skips_a_collective_before_a_receive_does_not_make_its_peer_guilty() -> None:
    """Rank 1 left its own order; rank 0's send is issued, behind the collective it waits in."""
    rings = {rank: [entry for number in range(4) for entry in step(rank, number, done=True)] for rank in range(4)}
    for rank, ring in rings.items():
        ring.extend(step(rank, 4, done=False, skips_world=rank == 1))
    report = report_of(rings, pg_config=WORLD | PIPE)

    assert report.verdict is not None
    assert report.verdict.kind is Kind.ORDER_INVERSION
    assert blamed(report) == set()
    assert {0, 1} <= {subject.rank for subject in report.verdict.candidates}


def test_operation_replaced_by_another_is_no_extra_one() -> None:
    rings = {rank: [make_entry(0), make_entry(1), *(outstanding(n) for n in range(2, 5))] for rank in range(4)}
    rings[1][2] = outstanding(2, profiling_name="nccl:broadcast")
    verdict = report_of(rings).verdict

    assert verdict is not None
    assert (verdict.kind, verdict.mismatch, verdict.edit) == (Kind.DESYNC, Mismatch.OP, None)
    assert [subject.rank for subject in verdict.culprits] == [1]


def test_two_operations_that_change_places_are_swapped_however_much_follows() -> None:
    sizes = [[[200]], [[300]], *([[size]] for size in range(400, 420))]
    rings = {rank: [outstanding(n, input_sizes=size) for n, size in enumerate(sizes)] for rank in range(4)}
    rings[3][0], rings[3][1] = outstanding(0, input_sizes=[[300]]), outstanding(1, input_sizes=[[200]])
    verdict = report_of(rings).verdict

    assert verdict is not None
    assert (verdict.mismatch, verdict.edit) == (Mismatch.SIZE, Edit.SWAPPED)


def test_splits_that_do_not_add_up_name_what_each_rank_sends_and_receives() -> None:
    sent = {0: 10, 1: 10, 2: 10, 3: 10}
    received = {0: 10, 1: 10, 2: 10, 3: 14}
    rings = {
        rank: [
            make_entry(0),
            outstanding(1, profiling_name="nccl:all_to_all", input_sizes=[[sent[rank]]], output_sizes=[[received[rank]]]),
        ]
        for rank in range(4)
    }
    verdict = report_of(rings).verdict

    assert verdict is not None
    assert verdict.mismatch is Mismatch.SPLITS
    assert verdict.culprits == ()
    assert verdict.first_divergence is not None
    assert [side.ranks for side in verdict.first_divergence.sides] == [(0, 1, 2), (3,)]


def test_field_lost_with_a_damaged_entry_is_no_difference() -> None:
    rings = {rank: [make_entry(0), outstanding(1)] for rank in (0, 1, 3)} | {2: [make_entry(0)]}
    rings[0] = [make_entry(0), outstanding(1, input_dtypes=...), outstanding(2, input_sizes="nonsense")]
    report = report_of(rings)

    assert blamed(report) == {2}


def test_every_rank_waiting_in_groups_without_names_is_a_circle() -> None:
    def waits(rank: int) -> list[Entry]:
        group = rank % 2 + 1
        return [gloo(0, is_retired=False, pg_id=group, process_group=(str(group), "undefined"), collective_seq_id=1, op_id=1)]

    broken = {"": {"name": "", "desc": "", "ranks": "[]"}}
    verdict = report_of({rank: waits(rank) for rank in range(4)}, pg_config=broken).verdict

    assert verdict is not None
    assert (verdict.kind, verdict.confidence) == (Kind.ORDER_INVERSION, Confidence.SUGGESTED)
    assert [subject.rank for subject in verdict.candidates] == [0, 1, 2, 3]


def test_first_operation_of_all_that_nobody_finishes_is_stuck_in_initialisation() -> None:
    verdict = report_of({rank: [outstanding(0)] for rank in range(4)}).verdict

    assert verdict is not None
    assert (verdict.kind, verdict.culprits) == (Kind.INIT_STUCK, ())


def test_member_list_without_the_rank_that_uses_the_group_is_not_believed() -> None:
    short = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}
    rings = {rank: [make_entry(0), outstanding(1)] for rank in (0, 1, 3)} | {2: [make_entry(0)]}

    assert blamed(report_of(rings, pg_config=short)) == {2}


def test_counter_of_a_transfer_says_nothing_of_collectives() -> None:
    """In a group with both the counters mix two sequences: completed transfer 6 does not complete all_reduce 2."""
    status = {"0": {"last_enqueued_collective": 2, "last_started_collective": -1, "last_completed_collective": 6}}
    sent = transfer(1, "send 0->1", done=True) | {"pg_id": 0, "process_group": ("0", "default_pg"), "p2p_seq_id": 6}
    waiting = [make_entry(0), sent, outstanding(2, collective_seq_id=2, p2p_seq_id=6)]
    report = report_of({0: waiting, 1: waiting, 3: waiting, 2: [make_entry(0)]}, pg_status=status)

    assert report.verdict is not None
    assert report.verdict.kind is Kind.MISSING_PARTICIPANT
    assert blamed(report) == {2}


def test_rank_that_the_launcher_ended_was_the_missing_one() -> None:
    """Watchdogs aborted the victims, torchrun ended the others: nobody died first, and rank 2 never came."""
    rings = {rank: [make_entry(0), outstanding(1)] for rank in (0, 1, 3)} | {2: [make_entry(0)]}
    ranks = [{"rank": rank, "process": {"state": "gone", "exit_code": -6 if rank == 0 else -15}} for rank in range(4)]
    description = parse_job(json.dumps({"job": "j", "world_size": 4, "ranks": ranks}).encode())
    evidence = [
        *evidence_from(rings),
        Evidence(source=CollectorName.HOST, rank=None, observation=description, origin="job.json"),
    ]
    report = judge(EvidenceView.of(evidence), Circumstances(decided_at=WHEN))

    assert report.verdict is not None
    assert (report.verdict.kind, report.status) == (Kind.MISSING_PARTICIPANT, Status.FAILED)
    assert blamed(report) == {2}


def test_job_that_was_ended_from_outside_is_not_healthy() -> None:
    ranks = [{"rank": rank, "process": {"state": "gone", "exit_code": -15}} for rank in range(4)]
    description = parse_job(json.dumps({"job": "j", "world_size": 4, "ranks": ranks}).encode())
    job = Evidence(source=CollectorName.HOST, rank=None, observation=description, origin="job.json")
    idle = evidence_from({rank: [make_entry(0)] for rank in range(4)})
    report = judge(EvidenceView.of([*idle, job]), Circumstances(decided_at=WHEN))

    assert (report.verdict, report.status) == (None, Status.FAILED)
    assert "not all with exit code 0" in report.notes[0]
