"""Two samples: what moved between them is no hang, what stood still is surer."""

from collections.abc import Iterable

from msgspec.structs import replace

from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence, FlightRecording, Stack
from pardbg.watchdog.model.names import Confidence, Status
from pardbg.watchdog.model.recording import Operation
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.scenario import simulate
from pardbg.watchdog.store.view import EvidenceView
from tests.diagnosis.diagnosing import WHEN, evidence_of

RECIPE = Recipe(fault="missing-participant-checkpoint", entries=40)


def report_of(evidence: Iterable[Evidence]) -> Report:
    return judge(EvidenceView.of(evidence), Circumstances(decided_at=WHEN))


def again(item: Evidence) -> Evidence:
    """The same observation as a second sample."""
    seen = item.observation
    later = replace(seen, sample=1) if isinstance(seen, FlightRecording | Stack) else seen
    return replace(item, observation=later, origin=f"{item.origin}_s1")


def finish(operation: Operation) -> Operation:
    return Operation(*(getattr(operation, name) if name != "is_done" else True for name in operation.__struct_fields__))


def test_one_sample_of_a_stack_is_support_and_two_establish() -> None:
    first = list(evidence_of(simulate(RECIPE)))
    second = [again(item) for item in first if isinstance(item.observation, FlightRecording | Stack)]

    once, twice = report_of(first).verdict, report_of([*first, *second]).verdict

    assert once is not None
    assert twice is not None
    assert (once.confidence, twice.confidence) == (Confidence.SUPPORTED, Confidence.ESTABLISHED)
    assert once.culprits == twice.culprits


def test_operation_that_completes_between_two_samples_is_no_hang() -> None:
    first = list(evidence_of(simulate(RECIPE)))
    second = [again(item) for item in first if isinstance(item.observation, FlightRecording)]
    moved = second[0].observation
    assert isinstance(moved, FlightRecording)
    done = replace(moved.recording, operations=tuple(map(finish, moved.recording.operations)))
    second[0] = replace(second[0], observation=replace(moved, recording=done))

    report = report_of([*first, *second])

    assert report.verdict is None
    assert report.status is Status.HEALTHY
    assert "moves" in report.notes[0]
