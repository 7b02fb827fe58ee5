"""Labelled dumps of real 16-rank Megatron MoE runs, from NVIDIA/nvidia-resiliency-ext: the planted ranks, and nobody else."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pardbg.watchdog.commands.main import pardbg
from pardbg.watchdog.outputs.validation import validate_report

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "nvrx"


@pytest.mark.parametrize(
    ("folder", "kind", "group"),
    [
        ("gpu_error_2nd", "device-stuck", "TENSOR_MODEL_PARALLEL_GROUP"),
        ("lock_gil_1st", "missing-participant", "EXPERT_MODEL_PARALLEL_GROUP"),
    ],
)
def test_real_faults_are_named_exactly(folder: str, kind: str, group: str) -> None:
    result = CliRunner().invoke(pardbg, ["analyze", str(CASES / folder), "--json"])
    report = json.loads(result.stdout)
    validate_report(report)
    blamed = {subject["rank"] for finding in report["findings"] for subject in finding["culprits"]}

    assert result.exit_code == 3
    assert blamed == {9, 14}
    assert report["verdict"]["kind"] == kind
    assert report["verdict"]["cause"] is None
    assert report["verdict"]["group"]["desc"] == group
    assert report["verdict"]["victims"] == [rank for rank in range(16) if rank not in (9, 14)]
    assert report["status"] == "hung"
    assert all(not finding["culprits"] for finding in report["set_aside"])


@pytest.mark.parametrize("folder", ["gpu_error_2nd", "lock_gil_1st"])
@pytest.mark.parametrize("lost", range(16))
def test_any_lost_dump_blames_no_innocent_rank(folder: str, lost: int) -> None:
    kept = [str(dump) for dump in (CASES / folder).glob("_dump_*") if dump.name != f"_dump_{lost}"]
    report = json.loads(CliRunner().invoke(pardbg, ["analyze", *kept, "--json"]).stdout)
    findings = [*report["findings"], *report["set_aside"]]

    assert {subject["rank"] for finding in findings for subject in finding["culprits"]} <= {9, 14} - {lost}
    assert lost in {unknown["rank"] for unknown in report["unknowns"]}
