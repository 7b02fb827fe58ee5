"""What the ranks' own probes add: a step is a sign of life, a phase a cause where the stack has none, and both are evidence."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from msgspec import structs

from pardbg.collectors.parsing.flight_recorder import parse_flight_recorder
from pardbg.collectors.parsing.stacks import encode_stack, parse_stacks
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence, FlightRecording, SourceContext, Stack, StackFrame, Thread
from pardbg.watchdog.model.heartbeat import Heartbeat
from pardbg.watchdog.model.names import Cause, CollectorName, JobSource, Kind, Status
from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.positions.reading import read_position
from pardbg.watchdog.store.view import EvidenceView
from tests.collectors.dumps import as_json, gloo, make_dump
from tests.diagnosis.live_evidence import IN_LOOP, WHEN, LiveJob, Seen, frame, job_of, sleeps, waits

SAMPLED_NS = 1_795_982_400 * 10**9  # WHEN
PAGE = "/dev/shm/pardbg-0/9-9/page"  # noqa: S108 - shown, not opened
SPINS = replace(sleeps(), system_call="running", state="R", owns_gil=True)
ON_THE_HOST = replace(sleeps(), system_call=None)


def beats(rank: int, *found: Heartbeat) -> Iterable[Evidence]:
    """Of one rank, sample by sample."""
    for sample, beat in enumerate(found):
        yield Evidence(source=CollectorName.HOST, rank=rank, observation=structs.replace(beat, sample=sample), origin=PAGE)


def recorder(rank: int, *, is_waiting: bool) -> Evidence:
    """All ranks have finished the first all_reduce; those that wait have entered the second."""
    entries = [gloo(0, is_retired=True), *([gloo(1, is_retired=False)] if is_waiting else [])]
    recording = parse_flight_recorder(as_json(make_dump(entries, pg_config={})))
    seen = FlightRecording(recording=recording, sample=1)
    return Evidence(source=CollectorName.FLIGHT_RECORDER, rank=rank, observation=seen, origin="socket")


def report(job: LiveJob, *more: Iterable[Evidence]) -> Report:
    """The judge's answer, with recorders and heartbeats."""
    waiting = {rank for rank, seen in job.seen.items() if seen.frames[0].name == "all_reduce"}
    recorders = [recorder(rank, is_waiting=rank in waiting) for rank in job.seen]
    evidence = [*job.evidence(), *recorders, *(item for part in more for item in part)]
    circumstances = Circumstances(decided_at=WHEN, source=JobSource.TORCHRUN, sampled_at=(WHEN, WHEN))
    return judge(EvidenceView.of(evidence), circumstances)


def told(found: Report) -> tuple[Kind | None, Cause | None, set[int | None]]:
    verdict = found.verdict
    return (verdict.kind, verdict.cause, {item.rank for item in verdict.culprits}) if verdict else (None, None, set())


def hung(culprit: Seen = ON_THE_HOST) -> LiveJob:
    return job_of(waits(), waits(), culprit, waits())


def test_waiting_rank_that_finished_a_step_shows_that_the_job_moves() -> None:
    found = report(hung(), beats(3, Heartbeat(step=7), Heartbeat(step=8)))

    assert (found.status, found.verdict) == (Status.HEALTHY, None)
    assert any("rank 3 has finished a step between the samples" in note for note in found.notes)


def test_same_step_in_both_samples_is_no_sign_of_life() -> None:
    found = report(hung(), beats(3, Heartbeat(step=7), Heartbeat(step=7)), beats(1, Heartbeat(step=9)))

    assert told(found)[2] == {2}


def test_steps_of_the_rank_that_is_waited_for_are_its_own_motion_only() -> None:
    found = report(hung(), beats(2, Heartbeat(step=7), Heartbeat(step=9)))

    assert told(found)[0] is Kind.SLOW_PHASE
    assert found.verdict is not None
    assert [(item.rank, item.why) for item in found.verdict.waiting_for] == [(2, "it has finished a step between the samples")]


def test_job_in_which_nobody_waits_is_alive_by_its_steps() -> None:
    quiet = replace(ON_THE_HOST, switches=1, moved_bytes=0)
    alive = report(job_of(quiet, quiet), beats(0, Heartbeat(step=7), Heartbeat(step=8)))
    still = report(job_of(quiet, quiet), beats(0, Heartbeat(step=7), Heartbeat(step=7)))

    assert (alive.status, still.status) == (Status.HEALTHY, Status.UNDETERMINED)


@pytest.mark.parametrize(("phase", "cause"), [("compile", Cause.COMPILE), ("checkpoint", Cause.CHECKPOINT_IO)])
@pytest.mark.parametrize("culprit", [ON_THE_HOST, SPINS])
def test_phase_is_the_cause_where_the_stack_has_none(phase: str, cause: Cause, culprit: Seen) -> None:
    found = report(hung(culprit), beats(2, *[Heartbeat(step=7, phase=phase)] * 2))

    assert told(found) == (Kind.MISSING_PARTICIPANT, cause, {2})
    assert found.verdict is not None
    assert f"in phase {phase}" in found.verdict.claim


@pytest.mark.parametrize("phase", ["evaluation", "", "\x1b"])
def test_other_phases_are_no_causes(phase: str) -> None:
    assert told(report(hung(), beats(2, *[Heartbeat(step=7, phase=phase)] * 2)))[1] is Cause.USER_CODE


def test_phase_is_never_held_against_a_better_cause() -> None:
    found = report(hung(sleeps()), beats(2, *[Heartbeat(step=7, phase="compile")] * 2))

    assert told(found) == (Kind.MISSING_PARTICIPANT, Cause.SLEEPING, {2})
    assert found.verdict is not None
    assert "in phase" not in found.verdict.claim


def test_evidence_tells_step_and_phase_of_the_culprit() -> None:
    beat = Heartbeat(
        step=1234, step_ended_ns=SAMPLED_NS - 312 * 10**9, phase="checkpoint", phase_since_ns=SAMPLED_NS - 311 * 10**9
    )
    found = report(hung(), beats(2, beat, beat), beats(0, Heartbeat(step=1), Heartbeat(step=1)))

    assert found.verdict is not None
    (line,) = [line for line in found.verdict.evidence if line.origin == PAGE]
    assert (line.source, line.rank, line.text) == (
        CollectorName.HOST,
        2,
        "step 1234, which ended 312 s ago; in phase checkpoint since 311 s",
    )
    assert [line.text for line in found.verdict.evidence if line.origin == "/proc" and "process 1002" in line.text]


def faulthandler_stack(*frames: StackFrame) -> Stack:
    return Stack(pid=1, threads=(Thread(name="MainThread", is_active=False, owns_gil=False, frames=frames),), tells_lock=False)


def asleep(system_call: str | None, state: str = "S") -> ProcessSample:
    return ProcessSample(pid=1, started_ticks=1, state=state, system_call=system_call)


def line_with(call: str) -> tuple[StackFrame, ...]:
    return (frame("load_batch", 12, source=SourceContext(calls=(call,))), *IN_LOOP)


@pytest.mark.parametrize(
    ("call", "state", "cause"),
    [
        ("time.sleep", "S", Cause.SLEEPING),
        ("lock.acquire", "S", Cause.LOCK),
        ("with self._lock", "S", Cause.LOCK),
        ("with open", "S", Cause.USER_CODE),
        ("time.sleep", "R", Cause.USER_CODE),
        ("data.get", "S", Cause.USER_CODE),
    ],
)
def test_where_the_system_call_may_not_be_seen_the_source_line_tells(call: str, state: str, cause: Cause) -> None:
    position = read_position(faulthandler_stack(*line_with(call)), asleep(None, state))

    assert position is not None
    assert position.cause is cause


def test_stack_that_does_not_tell_who_holds_the_lock_is_not_taken_for_native_code() -> None:
    stack = faulthandler_stack(*line_with("x.y"))
    position = read_position(stack, asleep("running", "R"))

    assert position is not None
    assert position.cause is Cause.BUSY_LOOP


def test_rank_whose_lock_is_never_free_is_held_by_it_and_that_can_be_saved() -> None:
    known = faulthandler_stack(*line_with("x.y"))
    stack = Stack(pid=known.pid, threads=known.threads, tells_lock=False, is_lock_held=True)
    position = read_position(stack, asleep(None))

    assert position is not None
    assert position.cause is Cause.GIL_HELD
    assert parse_stacks(encode_stack(stack)) == stack
