"""Where ranks of one group part, on small hand-made dumps: what counts as different, where it began, what follows from it."""

from collections.abc import Mapping

from pardbg.collectors.parsing.flight_recorder import parse_flight_recorder
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.names import Cause, Kind, Mismatch
from pardbg.watchdog.model.report import Finding
from pardbg.watchdog.store.view import EvidenceView
from tests.collectors.dumps import Entry, make_dump, make_entry, outstanding, pickled
from tests.diagnosis.diagnosing import WHEN
from tests.diagnosis.live_evidence import C10D, TRAIN, frame
from tests.diagnosis.log_files import stack
from tests.diagnosis.test_hand_made import PIPE, WORLD, evidence_from, report_of, transfer

FOUR = range(4)


def at(line: int) -> list[dict[str, object]]:
    return [{"name": "step", "filename": "/app/train.py", "line": line}]


def verdict_of(rings: Mapping[int, list[Entry]], **changes: object) -> Finding:
    verdict = report_of(rings, **changes).verdict
    assert verdict is not None
    return verdict


def accused(finding: Finding) -> tuple[list[int | None], list[int | None]]:
    return [subject.rank for subject in finding.culprits], [subject.rank for subject in finding.candidates]


def coalesced(sizes: list[int], *, record_id: int, seq: int, done: bool = False) -> list[Entry]:
    """All-gathers launched together, and the entry that closes them."""
    shared = {"collective_seq_id": seq, "output_sizes": [[9]]}
    members = [
        outstanding(record_id + place, profiling_name="nccl:_all_gather_base", input_sizes=[[size]], **shared)
        for place, size in enumerate(sizes)
    ]
    make = make_entry if done else outstanding
    bare: Entry = {"input_sizes": [], "output_sizes": [], "input_dtypes": [], "output_dtypes": []}
    closing = make(record_id + len(sizes), profiling_name="nccl:ALLGATHER_coalesced", **{**shared, **bare})
    return [*members, closing]


def test_rank_that_skips_an_operation_and_then_waits_in_a_transfer_is_named() -> None:
    """The circle - all wait for rank 1, rank 1 for rank 0 - is a consequence: its number 3 is another operation."""
    rings = {rank: [make_entry(0), make_entry(1), outstanding(2, input_sizes=[[7]])] for rank in FOUR}
    rings[0].append(transfer(3, "send 0->1", done=False))
    rings[1] = [make_entry(0), make_entry(1), transfer(2, "recv 1<-0", done=False)]
    rings[1].append(outstanding(3, collective_seq_id=3, profiling_name="nccl:broadcast"))
    verdict = verdict_of(rings, pg_config=WORLD | PIPE)

    assert (verdict.kind, accused(verdict)) == (Kind.DESYNC, ([1], []))


def test_operations_that_all_issued_in_one_order_leave_the_circle_of_groups_what_it_is() -> None:
    rings = {rank: [make_entry(0), make_entry(1), outstanding(2, input_sizes=[[7]])] for rank in FOUR}
    rings[0].append(transfer(3, "send 0->1", done=False))
    rings[1] = [make_entry(0), make_entry(1), transfer(2, "recv 1<-0", done=False)]
    rings[1].append(outstanding(3, collective_seq_id=3, input_sizes=[[7]]))

    assert verdict_of(rings, pg_config=WORLD | PIPE).kind is Kind.ORDER_INVERSION


def test_coalesced_groups_differ_where_one_has_a_tensor_less() -> None:
    rings = {rank: [make_entry(0), *coalesced([100, 200, 300], record_id=1, seq=2)] for rank in FOUR}
    rings[2] = [make_entry(0), *coalesced([100, 200], record_id=1, seq=2)]
    verdict = verdict_of(rings)

    assert (verdict.kind, verdict.mismatch, accused(verdict)) == (Kind.DESYNC, Mismatch.SIZE, ([2], []))


def test_coalesced_group_of_which_a_ring_has_lost_members_differs_from_none() -> None:
    whole = [*coalesced([100, 200, 300], record_id=8, seq=5), outstanding(12, collective_seq_id=6)]
    rings = {rank: [make_entry(7, collective_seq_id=4), *whole] for rank in FOUR}
    done = make_entry(13, profiling_name="nccl:send 0->1", is_p2p=True, pg_id=1, process_group=("1", PIPE["1"]["desc"]))
    rings[2] = [*whole[1:], done]
    verdict = verdict_of(rings, pg_config=WORLD | PIPE)

    assert verdict.kind is not Kind.DESYNC
    lost = parse_flight_recorder(pickled(make_dump(rings[2])))
    assert lost.signatures[lost.operations[0].signature].input_sizes == ()


def gathers(roots: set[int], op: str = "gather") -> dict[int, list[Entry]]:
    """One more tensor list than one, where it may be; the others have one, or an empty one."""
    sizes = {rank: [[64]] * 4 if rank in roots else [[0]] for rank in FOUR}
    return {
        rank: [make_entry(0), outstanding(1, profiling_name=f"nccl:{op}", input_sizes=[[64]], output_sizes=sizes[rank])]
        for rank in FOUR
    }


def test_gather_to_which_two_come_as_its_root_is_a_desync_of_these_two() -> None:
    verdict = verdict_of(gathers({0, 3}))

    assert (verdict.kind, verdict.mismatch, accused(verdict)) == (Kind.DESYNC, Mismatch.ROOT, ([], [0, 3]))
    assert verdict.victims == (1, 2)
    assert "rank 3 issued gather of 64 as its root" in verdict.claim


def test_gather_and_scatter_with_one_root_fit_together() -> None:
    kinds = {verdict_of(gathers({2})).kind, verdict_of(gathers({2}, "scatter")).kind}

    assert kinds == {Kind.COMM_STUCK}


def stray(sites: Mapping[int, int]) -> dict[int, list[Entry]]:
    """Two steps of two operations, a third operation from other lines (and finished), and rank 1 that issues it once more."""
    usual = [make_entry(n, frames=at(10 + n % 2), input_sizes=[[100 + n % 2]]) for n in range(4)]
    rings = {}
    for rank in FOUR:
        odd = make_entry(4, frames=at(sites[rank]), input_sizes=[[1]])
        rings[rank] = [*usual, odd, outstanding(5, frames=at(10), input_sizes=[[100]])]
    rings[1][5] = outstanding(5, frames=at(sites[1]), input_sizes=[[1]])
    return rings


def test_ranks_part_where_they_first_call_from_elsewhere_though_the_sizes_still_match_there() -> None:
    verdict = verdict_of(stray({0: 50, 1: 60, 2: 50, 3: 50}))

    assert (verdict.mismatch, accused(verdict)) == (Mismatch.CALL_SITE, ([1], []))
    assert verdict.first_divergence is not None
    assert verdict.first_divergence.seq == 5
    assert "they part for good at 6" in verdict.claim


def test_call_sites_that_always_differ_are_no_first_divergence() -> None:
    """Rank 1 is the root, and calls from a line of its own, in every step."""
    rings = stray({0: 50, 1: 60, 2: 50, 3: 50})
    for rank, ring in rings.items():
        ring[1] = make_entry(1, frames=at(60 if rank == 1 else 50), input_sizes=[[1]])
    verdict = verdict_of(rings)

    assert verdict.first_divergence is not None
    assert (verdict.mismatch, verdict.first_divergence.seq) == (Mismatch.SIZE, 6)


def test_types_are_told_where_they_are_what_differs() -> None:
    rings = {rank: [make_entry(0), outstanding(1)] for rank in FOUR}
    rings[3][1] = outstanding(1, input_dtypes=["BFloat16"])
    claim = verdict_of(rings).claim

    assert "rank 3 issued all_reduce of 1024x8 in BFloat16 at train.py:41" in claim
    assert "ranks 0-2 issued all_reduce of 1024x8 in Float at train.py:41" in claim


def test_place_of_an_operation_is_not_where_a_host_that_ran_ahead_stands_now() -> None:
    """Rank 3 has issued a later operation since; rank 2 waits in this one, by its stack."""
    rings = {rank: [make_entry(0, frames=...), outstanding(1, frames=...)] for rank in FOUR}
    rings[3] = [make_entry(0, frames=...), outstanding(1, frames=..., input_sizes=[[5]]), outstanding(2, frames=...)]
    waits = (frame("all_reduce", 2810, C10D), frame("step", 41, TRAIN))
    stacks = [stack(rank, *waits) for rank in FOUR]
    verdict = judge(EvidenceView.of([*evidence_from(rings), *stacks]), Circumstances(decided_at=WHEN)).verdict

    assert verdict is not None
    assert verdict.first_divergence is not None
    assert [side.where for side in verdict.first_divergence.sides] == [f"{TRAIN}:41 step", None]


def test_ranks_that_different_things_hold_up_are_findings_of_their_own() -> None:
    rings = {rank: [make_entry(0), *([] if rank in {1, 3} else [outstanding(1)])] for rank in FOUR}
    loader = "/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py"
    stacks = [
        stack(1, frame("__next__", 708, loader), frame("step", 30)),
        stack(3, frame("user_line", 291, "/usr/lib/python3.11/pdb.py")),
    ]
    report = judge(EvidenceView.of([*evidence_from(rings), *stacks]), Circumstances(decided_at=WHEN))

    assert [(found.cause, accused(found)[0]) for found in report.findings] == [
        (Cause.DATA_LOADING, [1]),
        (Cause.DEBUGGER, [3]),
    ]


def test_rank_that_misses_a_transfer_is_told_with_the_last_one_it_issued() -> None:
    rings = {rank: [make_entry(0)] for rank in FOUR}
    rings[0] += [transfer(1, "send 0->1", done=True)]
    rings[1] += [transfer(1, "recv 1<-0", done=True), transfer(2, "recv 1<-0", done=False)]
    verdict = verdict_of(rings, pg_config=WORLD | PIPE)

    assert any("its last transfer there is from rank 0 to rank 1 (finished)" in line.text for line in verdict.evidence)
