"""Traces of steps: the published figures of real production jobs, and small jobs made to be near misses of them."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from pardbg.watchdog.commands.main import pardbg
from pardbg.watchdog.graph.what_if import WhatIf
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.names import Cause, CollectorName, Kind, Scope, Status
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.model.step_trace import KernelTimes, StepTimes, StepTrace, TracedOperation
from pardbg.watchdog.outputs.validation import validate_report
from pardbg.watchdog.store.view import EvidenceView

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "straggler-traces"
KINDS = ("forward-compute", "backward-compute", "grads-reduce-scatter", "optimizer-clip-main-grad", "optimizer")
REPLICAS, STAGES, BATCHES, STEPS = 4, 2, 4, 6
Seconds = Callable[[int, int, int, int], float]
"""What the forward computation of a (replica, stage, step, batch) takes; the backward one takes twice as long."""


def analyze(path: Path) -> dict[str, object]:
    """The report of the command on one file."""
    result = CliRunner().invoke(pardbg, ["analyze", str(path), "--json"])
    report: dict[str, object] = json.loads(result.stdout)
    validate_report(report)
    assert result.exit_code == 3
    return report


def test_production_job_whose_last_stage_has_too_much_to_do_gives_the_published_figures() -> None:
    verdict = analyze(CASES / "trace-ST.parquet")["verdict"]

    assert isinstance(verdict, dict)
    assert (verdict["kind"], verdict["cause"]) == ("straggler", "pipeline-stage")
    assert [(subject["scope"], subject["ranks"], subject["coords"]) for subject in verdict["culprits"]] == [
        ("stage", [6, 7], {"pp": 3})
    ]
    assert verdict["victims"] == [0, 1, 2, 3, 4, 5]
    assert verdict["cost"] == {"slowdown": 1.179, "share": 0.152}
    assert "T = 2.173 s" in verdict["evidence"][0]["text"]
    assert "T_ideal = 1.843 s" in verdict["evidence"][0]["text"]
    assert "rank 7 wins back 0.031 (M_W), the last stage 1.219 (M_S)" in verdict["evidence"][1]["text"]


@pytest.mark.slow
def test_production_job_with_one_slow_worker_gives_the_published_figures() -> None:
    report = analyze(CASES / "trace-AR.parquet")
    verdict, job = report["verdict"], report["job"]

    assert isinstance(verdict, dict)
    assert isinstance(job, dict)
    assert job["world_size"] == 64
    assert (verdict["kind"], verdict["cause"]) == ("straggler", "compute")
    assert [subject["rank"] for subject in verdict["culprits"]] == [0]
    assert verdict["cost"] == {"slowdown": 1.973, "share": 0.493}
    assert "T = 46.336 s" in verdict["evidence"][0]["text"]
    assert "T_ideal = 23.485 s" in verdict["evidence"][0]["text"]
    assert "rank 0 wins back 1.002 (M_W), the last stage -0.001 (M_S)" in verdict["evidence"][1]["text"]


def trace(seconds: Seconds) -> StepTrace:
    """Four replicas of two stages that compute four batches a step, then meet."""
    operations = [operation for step in range(STEPS) for operation in _step(step, seconds)]
    return StepTrace(kinds=KINDS, operations=tuple(operations))


def _step(step: int, seconds: Seconds) -> list[TracedOperation]:
    operations, ends = [], {}
    for replica in range(REPLICAS):
        for stage in range(STAGES):
            now, place = 0.0, (stage * REPLICAS + replica, replica, stage, step)
            for batch in range(BATCHES):
                for kind in (0, 1):
                    takes = seconds(replica, stage, step, batch) * (1 + kind)
                    operations.append(TracedOperation(*place, kind, now, takes, batch, 0))
                    now += takes
            ends[place] = now
    reduced = {stage: max(end for place, end in ends.items() if place[2] == stage) + 0.02 for stage in range(STAGES)}
    clipped = max(reduced.values()) + 0.01
    for place, end in ends.items():
        operations.append(TracedOperation(*place, 2, end, reduced[place[2]] - end, 0, -1))
        operations.append(TracedOperation(*place, 3, reduced[place[2]], clipped - reduced[place[2]], 0, -1))
        operations.append(TracedOperation(*place, 4, clipped, 0.03, 0, -1))
    return operations


def report_on(*observations: tuple[int | None, StepTrace | KernelTimes]) -> Report:
    """The judge's answer."""
    evidence = [
        Evidence(source=CollectorName.GPU, rank=rank, observation=seen, origin=f"trace_{rank}") for rank, seen in observations
    ]
    return judge(EvidenceView.of(evidence), Circumstances(decided_at="2026-11-30T00:00:00Z"))


def test_times_of_a_step_that_is_played_again_are_those_of_its_order() -> None:
    what_if = WhatIf.of(trace(lambda replica, stage, *_: 0.2 if (replica, stage) == (1, 0) else 0.1))

    assert what_if is not None
    assert what_if.real_s == pytest.approx(4 * 0.6 + 0.02 + 0.01 + 0.03)
    assert what_if.ideal_s == pytest.approx(4 * 0.3 * 1.125 + 0.06)
    assert what_if.slowest_workers == (1,)
    assert what_if.won_by_workers > 0.9


def test_slow_worker_is_named_and_not_its_replica_or_stage() -> None:
    (found,) = report_on((None, trace(lambda replica, stage, *_: 0.15 if (replica, stage) == (2, 0) else 0.1))).findings

    assert (found.kind, found.cause) == (Kind.STRAGGLER, Cause.COMPUTE)
    assert [(subject.scope, subject.rank) for subject in found.culprits] == [(Scope.RANK, 2)]
    assert found.victims == (0, 1, 3, 4, 5, 6, 7)


@pytest.mark.parametrize(("slow", "ranks"), [(1, (4, 5, 6, 7)), (0, (0, 1, 2, 3))])
def test_stage_whose_ranks_are_all_slow_is_named_as_one(slow: int, ranks: tuple[int, ...]) -> None:
    (found,) = report_on((None, trace(lambda _, stage, *__: 0.15 if stage == slow else 0.1))).findings

    assert found.cause is Cause.PIPELINE_STAGE
    (subject,) = found.culprits
    assert (subject.scope, subject.ranks, subject.coords) == (Scope.STAGE, ranks, {"pp": slow})


def test_long_batches_that_go_round_are_the_batches_and_nobody() -> None:
    (found,) = report_on((None, trace(lambda replica, _, step, __: 0.2 if (step % REPLICAS) == replica else 0.1))).findings

    assert (found.cause, found.culprits, found.victims) == (Cause.SEQUENCE_LENGTH, (), ())


@pytest.mark.parametrize("seed", range(3))
def test_traces_of_ranks_that_only_shake_or_are_slow_together_accuse_nobody(seed: int) -> None:
    chance = random.Random(seed)
    shaking = report_on((None, trace(lambda *_: chance.gauss(0.1, 0.004))))
    together = report_on((None, trace(lambda _, __, step, ___: 0.1 + 0.05 * step)))

    assert (shaking.status, shaking.findings) == (Status.HEALTHY, ())
    assert [subject for finding in together.findings for subject in finding.culprits] == []


def test_operations_that_wait_in_a_circle_give_no_figures() -> None:
    rows = [TracedOperation(rank, rank, 0, 0, kind, 1.0 + (kind == 3 - rank), 0.5, 0, -1) for rank in (0, 1) for kind in (2, 3)]

    assert WhatIf.of(StepTrace(kinds=KINDS, operations=tuple(rows))) is None
    assert report_on((None, StepTrace(kinds=KINDS, operations=tuple(rows)))).findings == ()


def profile(compute_s: float, communication_s: float, *, loading_s: float = 0.0, steps: int = 4) -> KernelTimes:
    """The same step again and again."""
    span_s = compute_s + communication_s + loading_s
    rows = (StepTimes(step, span_s, compute_s, communication_s, 0.0, loading_s) for step in range(steps))
    return KernelTimes(steps=tuple(rows))


@pytest.mark.parametrize(
    ("slow", "cause"),
    [
        pytest.param(profile(0.17, 0.02, loading_s=0.15), Cause.DATA_LOADING, id="C76"),
        pytest.param(profile(0.32, 0.02), Cause.COMPUTE, id="slow-gpu"),
    ],
)
def test_rank_that_communicates_least_is_late_and_not_the_one_with_the_longest_backward(
    slow: KernelTimes, cause: Cause
) -> None:
    (found,) = report_on((0, profile(0.17, 0.17)), (1, slow), (2, profile(0.17, 0.17)), (3, profile(0.17, 0.17))).findings

    assert (found.kind, found.cause, [subject.rank for subject in found.culprits]) == (Kind.STRAGGLER, cause, [1])
    assert found.victims == (0, 2, 3)


def test_profiles_of_two_steps_or_of_ranks_alike_accuse_nobody() -> None:
    alike = report_on(*((rank, profile(0.17, 0.17 + rank / 1000)) for rank in range(4)))
    few = report_on((0, profile(0.17, 0.17, steps=2)), (1, profile(0.3, 0.02, steps=2)), (2, profile(0.17, 0.17, steps=2)))

    assert [(report.status, report.findings) for report in (alike, few)] == [(Status.HEALTHY, ())] * 2
