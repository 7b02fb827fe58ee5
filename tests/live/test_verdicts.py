"""Real hung jobs, from the files they left to the verdict. Each job runs once; see `conftest.py`."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.live.recorded.faults import FAULTS, fault_named

from pardbg.watchdog.commands.analysis import analyze_paths
from pardbg.watchdog.model.names import Cause, Edit, Kind, Mismatch, Status
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.outputs.as_json import render_json
from pardbg.watchdog.outputs.exit_code import exit_code
from pardbg.watchdog.outputs.validation import validate_report

pytestmark = pytest.mark.live

PlantedJob = Callable[[str], Path]
UNNAMEABLE = "subgroup-missing"  # gloo does not record who belongs to a group that has completed nothing yet


def blamed(report: Report) -> set[int]:
    """All ranks that any finding, set aside or not, calls a culprit."""
    findings = (*report.findings, *report.set_aside)
    return {subject.rank for finding in findings for subject in finding.culprits if subject.rank is not None}


def analyze(*paths: Path) -> Report:
    report = analyze_paths(paths)
    validate_report(json.loads(render_json(report)))
    return report


@pytest.mark.parametrize("fault_name", [fault.name for fault in FAULTS])
def test_verdict_names_what_was_planted_and_blames_nobody_else(fault_name: str, planted_job: PlantedJob) -> None:
    report = analyze(planted_job(fault_name))
    fault = fault_named(fault_name)

    assert fault.is_named_by(report), report.verdict
    assert blamed(report) == set(fault.culprits)
    assert exit_code(report) == {None: 0, Kind.INSUFFICIENT_EVIDENCE: 4}.get(fault.kind, 3)


@pytest.mark.parametrize(
    ("fault_name", "mismatch", "edit"),
    [
        ("skipped", Mismatch.OP, Edit.SKIPPED),
        ("extra", Mismatch.OP, Edit.EXTRA),
        ("swapped", Mismatch.OP, Edit.SWAPPED),
        ("other-op", Mismatch.OP, None),
        ("other-size", Mismatch.SIZE, None),
    ],
)
def test_divergence_says_what_differs_and_which_edit_explains_it(
    fault_name: str, mismatch: Mismatch, edit: Edit | None, planted_job: PlantedJob
) -> None:
    verdict = analyze(planted_job(fault_name)).verdict

    assert verdict is not None
    assert (verdict.mismatch, verdict.edit) == (mismatch, edit)
    assert verdict.first_divergence is not None
    assert all(side.where and ".py:" in side.where for side in verdict.first_divergence.sides)


def test_stack_gives_the_cause(planted_job: PlantedJob) -> None:
    verdict = analyze(planted_job("stops-joining")).verdict

    assert verdict is not None
    assert verdict.cause is Cause.CHECKPOINT_IO
    assert "torch/serialization.py" in verdict.claim
    assert verdict.victims == (0, 1, 3)


def test_members_that_gloo_does_not_name_are_not_guessed(planted_job: PlantedJob) -> None:
    report = analyze(planted_job(UNNAMEABLE))

    assert report.verdict is not None
    assert report.verdict.kind is Kind.INSUFFICIENT_EVIDENCE
    assert [subject.rank for subject in report.verdict.candidates] == [3]
    assert blamed(report) == set()


@pytest.mark.parametrize("fault_name", [fault.name for fault in FAULTS])
def test_dumps_alone_blame_no_innocent_rank(fault_name: str, planted_job: PlantedJob, tmp_path: Path) -> None:
    for dump in planted_job(fault_name).glob("comm_lib_trace_rank_*"):
        shutil.copy(dump, tmp_path)
    assert blamed(analyze(tmp_path)) <= set(fault_named(fault_name).culprits)


@pytest.mark.parametrize("fault_name", ["skipped", "other-op", "order", "other-size", "left-early", "stops-joining"])
def test_verdicts_need_nothing_but_the_dumps(fault_name: str, planted_job: PlantedJob, tmp_path: Path) -> None:
    for dump in planted_job(fault_name).glob("comm_lib_trace_rank_*"):
        shutil.copy(dump, tmp_path)
    assert fault_named(fault_name).is_named_by(analyze(tmp_path))


@pytest.mark.parametrize("fault_name", [fault.name for fault in FAULTS])
def test_any_missing_dump_makes_no_innocent_rank_guilty(fault_name: str, planted_job: PlantedJob, tmp_path: Path) -> None:
    for lost in range(4):
        folder = tmp_path / str(lost)
        shutil.copytree(planted_job(fault_name), folder)
        (folder / f"comm_lib_trace_rank_{lost}").unlink(missing_ok=True)
        truly = {3} if fault_name == UNNAMEABLE else set(fault_named(fault_name).culprits)
        assert blamed(analyze(folder)) <= truly, lost  # a rank without a dump may stand in a gathering and so name rank 3


def test_job_that_ended_has_failed(planted_job: PlantedJob) -> None:
    assert analyze(planted_job("left-early-exit")).status is Status.FAILED
