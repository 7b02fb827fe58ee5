"""How whoever is late is named - rank, host or stage - and why it is slow: what is definite first. Each holds a rule."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from pardbg.collectors.digesting import digest
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.straggler import stragglers_without_reason
from pardbg.watchdog.model.evidence import Evidence, StackFrame
from pardbg.watchdog.model.names import Cause, Confidence, Kind, Scope
from pardbg.watchdog.model.recording import Operation, Recording
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.store.view import EvidenceView
from tests.diagnosis.live_evidence import C10D, frame
from tests.diagnosis.log_files import stack
from tests.diagnosis.test_slow_signs import COOL, HOT, gpus, quotas, steps
from tests.diagnosis.test_slow_signs import report_on as report_on_signs
from tests.diagnosis.test_stragglers import ONE_HOST, STAGES, TWO_HOSTS, WORLD, always, play, report_on

PAIRS = ("a", "a", "b", "b", "c", "c", "d", "d")
LATE_NS = 400_000_000
TRAINING = (frame("step", 12),)
REDUCING = (frame("all_reduce", 3000, C10D), *TRAINING)
SAVING = (frame("save", 900, "/opt/venv/lib/python3.11/site-packages/torch/serialization.py"), *TRAINING)
LOADING = (
    frame("__next__", 733, "/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py"),
    frame("step", 3),
)


def named(report: Report) -> list[tuple[Scope, tuple[int, ...]]]:
    return sorted((subject.scope, subject.ranks) for found in report.findings for subject in found.culprits)


@pytest.mark.parametrize(
    ("late", "hosts", "scopes"),
    [
        pytest.param((2,), PAIRS, [(Scope.RANK, (2,))], id="one of a host"),
        pytest.param((2, 5), PAIRS, [(Scope.RANK, (2,)), (Scope.RANK, (5,))], id="one of two hosts each"),
        pytest.param((2,), tuple("abcdefgh"), [(Scope.RANK, (2,))], id="alone on its host"),
        pytest.param((2, 3), ONE_HOST, [(Scope.RANK, (2,)), (Scope.RANK, (3,))], id="two of the only host"),
    ],
)
def test_only_all_of_several_ranks_of_a_host_are_the_host(
    late: tuple[int, ...], hosts: Sequence[str], scopes: list[tuple[Scope, tuple[int, ...]]]
) -> None:
    assert named(report_on(play(WORLD, ["0"], always(*late)), hosts)) == scopes


def test_a_stage_that_is_a_host_is_told_as_the_host() -> None:
    layout = {**STAGES, "dp0": ("DATA_PARALLEL_GROUP", tuple(range(8)))}
    report = report_on(play(layout, ["dp"], always(6, 7)), PAIRS)
    assert named(report) == [(Scope.HOST, (6, 7))]


def late_with(*more: Evidence) -> tuple[Cause | None, Scope, Confidence]:
    """What is told of rank 5, which is always late."""
    (found,) = report_on_signs([*steps(always(5)), *more], 8).findings
    (culprit,) = found.culprits
    assert (found.kind, culprit.rank) == (Kind.STRAGGLER, 5)
    return found.cause, culprit.scope, found.confidence


def looks(*stacks: tuple[StackFrame, ...], rank: int = 5) -> list[Evidence]:
    """One after the other."""
    seen = (stack(rank, *frames) for frames in stacks)
    return [replace(one, observation=replace(one.observation, sample=number)) for number, one in enumerate(seen)]


HOT_5 = tuple(gpus(*(HOT if rank == 5 else COOL for rank in range(8))))
QUOTA_5 = [3.0 if rank == 5 else 0.0 for rank in range(8)]
LOADS = (Cause.DATA_LOADING, Scope.RANK, Confidence.ESTABLISHED)


@pytest.mark.parametrize(
    ("stacks", "signs", "told"),
    [
        pytest.param((LOADING,), (), LOADS, id="loads"),
        pytest.param((LOADING,), HOT_5, LOADS, id="loads, and is hot"),
        pytest.param((TRAINING,), HOT_5, (Cause.THERMAL, Scope.DEVICE, Confidence.SUPPORTED), id="computes, and is hot"),
        pytest.param((), HOT_5, (Cause.THERMAL, Scope.DEVICE, Confidence.SUPPORTED), id="hot"),
        pytest.param((), quotas(*QUOTA_5), (Cause.CPU_CONTENTION, Scope.RANK, Confidence.SUPPORTED), id="has no quota left"),
        pytest.param((SAVING,), HOT_5, (Cause.THERMAL, Scope.DEVICE, Confidence.SUPPORTED), id="saves, and is hot"),
        pytest.param((SAVING,), (), (None, Scope.RANK, Confidence.SUPPORTED), id="saves"),
        pytest.param((TRAINING, TRAINING, LOADING), (), LOADS, id="loads, once"),
        pytest.param((SAVING, LOADING, LOADING), (), LOADS, id="loads, mostly"),
        pytest.param((REDUCING, REDUCING, LOADING), (), LOADS, id="waits, mostly"),
        pytest.param((REDUCING, REDUCING, TRAINING), (), (Cause.COMPUTE, Scope.RANK, Confidence.ESTABLISHED), id="computes"),
    ],
)
def test_a_stack_with_a_definite_reason_counts_more_than_a_sign_and_a_sign_more_than_other_stacks(
    stacks: tuple[tuple[StackFrame, ...], ...], signs: Sequence[Evidence], told: tuple[Cause | None, Scope, Confidence]
) -> None:
    assert late_with(*signs, *looks(*stacks)) == told


def test_only_of_whom_nothing_is_known_a_closer_look_is_worth_it() -> None:
    late = steps(always(5))
    assert stragglers_without_reason(Situation.of(EvidenceView.of(late))) == ()  # nothing shows that the job moves
    late += looks(REDUCING, TRAINING, rank=0)
    assert stragglers_without_reason(Situation.of(EvidenceView.of(late))) == (5,)
    assert stragglers_without_reason(Situation.of(EvidenceView.of([*late, *looks(LOADING)]))) == ()


def test_what_only_one_rank_of_a_late_host_shows_is_not_why_the_host_is_late() -> None:
    def told(*grown_s: float) -> tuple[Cause | None, int]:
        (found,) = report_on(play(WORLD, ["0"], always(2, 3)), PAIRS, *quotas(*grown_s)).findings
        return found.cause, len(found.culprits)

    assert told(0.0, 0.0, 3.0, 3.0, 0.0, 0.0, 0.0, 0.0) == (Cause.CPU_CONTENTION, 1)
    assert told(0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0) == (None, 1)


def stuck(recording: Recording, rank: int) -> Recording:
    """All but rank 5 wait in one more collective."""
    last = recording.operations[-1]
    if rank == 5:
        return recording
    more = replace(last, record_id=last.record_id + 1, seq=last.seq + 1, is_done=False, completed_ns=0)
    return replace(recording, operations=(*recording.operations, more))


def test_in_a_hang_nobody_is_called_late() -> None:
    rounds = [stuck(one, rank) for rank, one in enumerate(play(WORLD, ["0"], always(5)))]
    report = report_on(rounds, TWO_HOSTS)
    assert Kind.STRAGGLER not in {found.kind for found in (*report.findings, *report.set_aside)}


def test_what_is_damaged_tells_of_nobody_that_it_is_late() -> None:
    whole = play(WORLD, ["0"], always(5))
    assert report_on([replace(one, damage="the end is missing") for one in map(digest, whole)], TWO_HOSTS).findings == ()
    assert named(report_on(list(map(digest, whole)), TWO_HOSTS)) == [(Scope.RANK, (5,))]


def after_transfers(recording: Recording, rank: int) -> Recording:
    """Rank 5 gets something from rank 4 before each collective, and waits for it where that one is late."""
    if rank != 5:
        return recording
    waits = {
        one.seq: replace(one, is_p2p=True, created_ns=one.created_ns - LATE_NS, completed_ns=one.created_ns)
        for one in recording.operations
    }
    pairs: list[Operation] = [each for one in recording.operations for each in (waits[one.seq], one)]
    return replace(recording, operations=tuple(replace(one, record_id=place) for place, one in enumerate(pairs)))


def test_who_waits_for_a_transfer_is_not_late_by_its_own_doing() -> None:
    rounds = play(WORLD, ["0"], always(4, 5))
    assert named(report_on(rounds, TWO_HOSTS)) == [(Scope.RANK, (4,)), (Scope.RANK, (5,))]
    waited = [after_transfers(one, rank) for rank, one in enumerate(rounds)]
    assert named(report_on(waited, TWO_HOSTS)) == [(Scope.RANK, (4,))]


def test_without_one_members_recorder_nobody_knows_when_a_collective_of_one_host_ended() -> None:
    """Rank 7 may come later still than rank 5."""
    rounds = play(WORLD, ["0"], always(5), backend="gloo")
    assert named(report_on(rounds, ONE_HOST)) == [(Scope.RANK, (5,))]
    assert report_on(rounds[:7], ONE_HOST).findings == ()
