"""The jobs of `test_scan.py`, started with `pardbg run`: the same verdicts, and now with every recorder and every group."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.live.scanning import Case, Scan, run_scan
from tests.live.test_scan import EVERYDAY, MISSING, REST, STYLES, hung

pytestmark = pytest.mark.live

HERE = {("train", "checkpoint"), ("orders", "opposite-order")}
"""What `make test` runs; all others are in `make test-all`."""


def _all_cases() -> Iterator[Any]:
    cases = (*EVERYDAY, *REST, *(Case("styles", style, MISSING, "file-io", {2}) for style in STYLES))
    for case in cases:
        if not case.env:  # a recorder that is switched off stays so: the user's own value
            marks = () if (case.program, case.fault) in HERE else (pytest.mark.slow,)
            yield pytest.param(case, id=case.name, marks=marks)


EXCUSES = {"empty", "gone"}
"""Why a prepared rank may have no recording: gloo records no P2P, and some jobs do nothing else; or its process has ended."""


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Short enough for the name of a socket."""
    with tempfile.TemporaryDirectory(prefix="pardbg-") as name:
        yield Path(name)


@pytest.mark.parametrize("case", list(_all_cases()))
def test_verdict_of_a_prepared_job_has_every_recorder_and_every_group(case: Case, tmp_path: Path, short_folder: Path) -> None:
    wrapper = [sys.executable, "-m", "pardbg", "run", "--job", f"prepared-{case.name}", "--"]
    with hung(case, tmp_path / "job", {"PARDBG_DIR": str(short_folder)}, wrapper):
        scan = run_scan(("--job", f"prepared-{case.name}"), "--save", str(tmp_path / "saved"))

    assert (scan.kind, scan.cause, scan.blamed) == (case.kind, case.cause, case.culprits), scan.summary
    assert scan.exit_code == 3
    assert scan.report["job"]["source"] == "run"
    missed = {item["reason"] for item in scan.report["unknowns"] if item["collector"] == "flight-recorder"}
    assert missed <= EXCUSES | ({"unreachable"} if case.cause == "stopped" else set()), scan.summary
    group = scan.verdict["group"]
    assert group is None or group["ranks"], scan.verdict
    again = Scan.of_files(tmp_path / "saved")
    assert (again.kind, again.cause, again.blamed) == (case.kind, case.cause, case.culprits), again.summary
