"""NCCL's RAS names who is missing or dead only where nothing else was seen, and nothing moves. Near misses beside."""

from typing import Any

import pytest
from msgspec.structs import replace

from pardbg.collectors.parsing.ras_json import parse_ras_json
from pardbg.collectors.parsing.ras_text import parse_ras_text
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence, JobDescription, RankDescription
from pardbg.watchdog.model.names import CollectorName, Confidence, Kind, Status
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.store.view import EvidenceView
from tests.collectors.dumps import make_entry, outstanding
from tests.collectors.test_ras import answer, gone, member
from tests.diagnosis.diagnosing import WHEN
from tests.diagnosis.test_hand_made import evidence_from

BEHIND = answer(member(0), member(1, 4), member(2), member(3))
EQUAL = answer(member(0), member(1), member(2), member(3))
WAITING: dict[int, list[dict[str, Any]]] = {rank: [make_entry(0), outstanding(1)] for rank in (0, 2, 3)}


def report_of(*polls: bytes, rings: dict[int, list[dict[str, Any]]] | None = None, is_over: bool = False) -> Report:
    ranks = tuple(RankDescription(rank=rank, host="h1", exit_code=1 if is_over and rank == 2 else None) for rank in range(4))
    job = JobDescription(job="j", world_size=4, ranks=ranks)
    evidence = [Evidence(source=CollectorName.HOST, rank=None, observation=job, origin="job.json"), *evidence_from(rings or {})]
    evidence += [
        Evidence(source=CollectorName.RAS, rank=None, observation=replace(parse_ras_json(poll), sample=number), origin="ras")
        for number, poll in enumerate(polls)
    ]
    return judge(EvidenceView.of(evidence), Circumstances(decided_at=WHEN))


def told(report: Report) -> tuple[Kind | None, set[int | None]]:
    verdict = report.verdict
    return (verdict.kind, {subject.rank for subject in verdict.culprits}) if verdict else (None, set())


@pytest.mark.parametrize(
    ("polls", "ranks"),
    [
        ((BEHIND, BEHIND), {1}),
        ((BEHIND,), set()),  # may be on its way
        ((answer(member(0, 3), member(1, 3), member(2, 3), member(3, 3)), BEHIND), set()),  # it moves
        ((EQUAL, EQUAL), set()),
        ((answer(member(0, 0), member(1, 0), member(2, 0), member(3, 0)),) * 2, set()),  # zeros prove nothing
        ((answer(member(0), member(1, 0), member(2), member(3)),) * 2, set()),  # nor does one
        ((answer(member(0), member(1, 4), member(2)),) * 2, set()),  # not all members are there
        ((answer(member(0), member(1, 4), member(2), missing=(gone(3, is_dead=False),)),) * 2, set()),
        ((answer(member(0), member(1, 4), member(2, 4), member(3)),) * 2, set()),  # no majority
        ((answer(member(0, 6), member(1), member(2), member(3)),) * 2, set()),  # one is ahead
        ((answer(member(0), member(1, 4), member(2), size=3),) * 2, set()),  # members of a part are no ranks of the job
        ((), set()),
    ],
)
def test_a_clear_minority_that_stays_behind_is_missing(polls: tuple[bytes, ...], ranks: set[int]) -> None:
    kind, culprits = told(report_of(*polls))
    assert culprits == ranks
    assert kind is (Kind.MISSING_PARTICIPANT if ranks else kind)


def test_ranks_that_are_seen_to_wait_stand_for_a_second_answer() -> None:
    report = report_of(BEHIND, rings=WAITING)
    assert told(report) == (Kind.MISSING_PARTICIPANT, {1})
    assert report.verdict is not None
    assert report.verdict.confidence is Confidence.SUGGESTED
    assert report.verdict.claim.startswith("by NCCL's RAS rank 1 has not launched AllReduce 5 of the job's communicator")
    assert [line.text for line in report.verdict.evidence] == [
        "it has launched 4 AllReduce operations of the job's communicator, most others 5"
    ]

    assert told(report_of(rings=WAITING)) == (Kind.INSUFFICIENT_EVIDENCE, set())


def test_recorders_are_believed_before_it() -> None:
    all_in = {**WAITING, 1: [make_entry(0), outstanding(1)]}
    assert told(report_of(BEHIND, BEHIND, rings=all_in)) == (Kind.COMM_STUCK, set())
    other = {**all_in, 2: [make_entry(0)]}
    assert told(report_of(BEHIND, BEHIND, rings=other)) == (Kind.MISSING_PARTICIPANT, {2})


def test_who_is_held_for_dead_and_was_not_seen_otherwise_is_dead() -> None:
    poll = answer(member(0), member(2), member(3), missing=(gone(1, is_dead=True),))
    report = report_of(poll, rings=WAITING)
    assert told(report) == (Kind.DEAD_RANK, {1})
    assert report.verdict is not None
    assert (report.verdict.confidence, report.verdict.cause, report.verdict.victims) == (Confidence.SUPPORTED, None, (0, 2, 3))

    silent = answer(member(0), member(2), member(3), missing=(gone(1, is_dead=False),))
    assert told(report_of(silent, rings=WAITING)) == (Kind.INSUFFICIENT_EVIDENCE, set())


def test_a_process_that_is_known_to_have_ended_counts_more() -> None:
    poll = answer(member(0), member(2), member(3), missing=(gone(1, is_dead=True),))
    kind, culprits = told(report_of(poll, rings={rank: WAITING[rank] for rank in (0, 3)}, is_over=True))
    assert (kind, culprits) == (Kind.DEAD_RANK, {2})


ALONE = """NCCL version 2.24.3 compiled with CUDA 12.8
CUDA runtime version 12080, driver version 12080

#0-0 (cafe1234) {trouble}
"""
DIFFERENT = """MISMATCH
  Communicator ranks have different collective operation counts
  3 ranks have launched up to operation 41
  1 rank has launched up to operation 40
  Rank 2 -- GPU 2 managed by process 4002 on node 10.0.0.1"""
SILENT = """INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 3
  Rank 3 -- GPU 1 managed by process 4003 on node 10.0.0.2"""
ROW = "\nGroup  Comms  Nodes  Ranks  Ranks  Ranks  Status  Errors\n  0  1  1  4  4  4  RUNNING  "


@pytest.mark.parametrize(("trouble", "rank"), [(DIFFERENT, 2), (SILENT, 3)])
def test_one_answer_and_nothing_else_makes_a_candidate_and_no_culprit(trouble: str, rank: int) -> None:
    head, rest = ALONE.format(trouble=trouble).split("\n\n", 1)
    seen = parse_ras_text(head + "\n" + ROW + trouble.split("\n", maxsplit=1)[0] + "\n\n" + rest)
    report = judge(
        EvidenceView.of([Evidence(source=CollectorName.RAS, rank=None, observation=seen, origin="ras.txt")]),
        Circumstances(decided_at=WHEN),
    )
    assert (report.status, told(report), report.job.world_size) == (
        Status.UNDETERMINED,
        (Kind.INSUFFICIENT_EVIDENCE, set()),
        4,
    )
    assert report.verdict is not None
    assert {subject.rank for subject in report.verdict.candidates} == {rank}
    assert not any("flight recorder of no rank" in note for note in report.notes)


def test_answers_with_nothing_amiss_make_no_finding() -> None:
    report = report_of(EQUAL)
    assert report.verdict is None
    assert report.notes == ("NCCL's RAS tells nothing amiss of any rank, and it does not say whether operations finish",)
