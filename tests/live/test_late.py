"""Jobs that move, in which ranks come late: who always does is named within 20 steps, with the reason; chance names nobody."""

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.live.running import running_job
from tests.live.scanning import Scan, run_scan

pytestmark = pytest.mark.live

SLOW = pytest.mark.slow


@contextmanager
def late(lateness: str, how: str, folder: Path, steps: int = 20) -> Iterator[str]:
    """The job after so many steps, at least 20; what to scan it by."""
    name = f"late-{lateness}-{how}"
    with tempfile.TemporaryDirectory(prefix="pardbg-") as short:  # short enough for the name of a socket
        wrapper = [sys.executable, "-m", "pardbg", "run", "--job", name, "--"]
        with running_job(
            "late", "--lateness", lateness, "--how", how, folder=folder, prefix=wrapper, env={"PARDBG_DIR": short}
        ) as job:
            job.wait_until_hung(settle_s=(steps - 20) * 0.12)
            yield name


@pytest.mark.parametrize(("how", "cause"), [("loader", "data-loading"), pytest.param("compute", "compute", marks=SLOW)])
def test_rank_that_is_late_every_step_is_named_with_its_reason(how: str, cause: str, tmp_path: Path) -> None:
    with late("always", how, tmp_path / "job") as name:
        scan = run_scan(("--job", name), "--save", str(tmp_path / "saved"))

    assert (scan.kind, scan.cause, scan.blamed) == ("straggler", cause, {2}), scan.summary
    assert (scan.exit_code, scan.report["status"]) == (3, "slow")
    assert 0.5 < scan.verdict["cost"]["share"] < 0.9, scan.verdict["cost"]
    assert scan.verdict["victims"] == [0, 1, 3]
    again = Scan.of_files(tmp_path / "saved")
    assert (again.kind, again.blamed) == ("straggler", {2}), again.summary


@pytest.mark.parametrize(
    ("lateness", "steps"), [("jitter", 60), pytest.param("jitter", 1000, marks=SLOW), pytest.param("everyone", 20, marks=SLOW)]
)
def test_nobody_is_named_where_ranks_are_late_by_chance_or_all_alike(lateness: str, steps: int, tmp_path: Path) -> None:
    with late(lateness, "compute", tmp_path / "job", steps) as name:
        scan = run_scan(("--job", name))

    assert (scan.report["status"], scan.report["findings"], scan.exit_code) == ("healthy", [], 0), scan.summary


@pytest.mark.slow
def test_lateness_that_goes_round_names_nobody(tmp_path: Path) -> None:
    with late("in-turn", "compute", tmp_path / "job") as name:
        time.sleep(10)
        scan = run_scan(("--job", name))

    assert (scan.kind, scan.cause, scan.blamed) == ("straggler", "rotating", set()), scan.summary
