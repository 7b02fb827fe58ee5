"""Jobs that train with DistributedDataParallel under `pardbg run`, scanned while they run, after their end, and from files.

Cost: two jobs of four ranks, some 25 s.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.live.scanning import Scan, run_scan

from pardbg.collectors.parsing.page import parse_page
from pardbg.watchdog.errors import ParseError

pytest.importorskip("torch", reason="torch is not installed: pip install 'pardbg[demo]'")
pytestmark = pytest.mark.live

JOB = Path(__file__).parents[1] / "probe" / "jobs" / "train_replicas.py"
RANKS = 4
ENOUGH_STEPS = 70
"""Two looks after the bit has flipped: at 32 and 64."""
DEADLINE_S = 240.0  # 10 s on two idle cores


@contextmanager
def running(name: str, folder: Path, *words: str) -> Iterator[None]:
    """A job that has trained for a while, and trains on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    own = {"WORLD_SIZE": str(RANKS), "PARDBG_DIR": str(folder)}
    command = [sys.executable, "-m", "pardbg", "run", "--job", name, "--", sys.executable, str(JOB), "pause=0.02", *words]
    ranks = [
        subprocess.Popen(
            command,
            env={**common, **own, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for rank in range(RANKS)
    ]
    try:
        wait_for_steps(folder, ranks)
        yield
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


def wait_for_steps(folder: Path, ranks: list["subprocess.Popen[bytes]"]) -> None:
    """Until all pages say that the job has trained for long enough."""
    until_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < until_s:
        pages = list(folder.glob("*-*/page"))
        if len(pages) == RANKS and all(last_step(page) >= ENOUGH_STEPS for page in pages):
            return
        assert all(rank.poll() is None for rank in ranks), "a rank has ended"
        time.sleep(0.1)
    raise AssertionError("the job did not train")


def last_step(page: Path) -> int:
    """What a page says now."""
    try:
        return parse_page([page.read_bytes()]).step or 0
    except ParseError:
        return 0


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short enough for the name of a socket, and in memory."""
    with tempfile.TemporaryDirectory(prefix="replicas-", dir="/dev/shm") as name:
        yield Path(name)


def told(scan: Scan) -> list[tuple[Any, Any, list[int], list[int]]]:
    """Kind, cause, culprits and candidates of each finding."""
    return [
        (
            finding["kind"],
            finding["cause"],
            [item["rank"] for item in finding["culprits"]],
            [item["rank"] for item in finding["candidates"]],
        )
        for finding in scan.report["findings"]
    ]


def test_flipped_bit_and_data_of_another_are_told_while_the_job_runs_after_its_end_and_from_files(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [("replica-divergence", None, [2], []), ("replica-divergence", "same-data", [], [0, 3])]
    with running("replicas-ill", folder, "flip=2", "same=3"):
        scan = run_scan(("--job", "replicas-ill"), "--save", str(tmp_path / "saved"))
    assert told(scan) == expected, scan.text
    assert (scan.report["status"], scan.exit_code, scan.verdict["since_step"]) == ("degraded", 3, 32)
    assert scan.verdict["group"]["ranks"] == [0, 1, 2, 3]
    assert "1 of 6 parameters that are compared differs (number 4 " in scan.verdict["claim"]
    assert told(Scan.of_files(tmp_path / "saved")) == expected
    monkeypatch.setenv("PARDBG_DIR", str(folder))
    after = run_scan(("--job", "run:replicas-ill"))
    assert after.report["status"] == "failed"
    assert expected[0] in told(after), after.text  # without recorders of all ranks nobody knows who may share data


@pytest.mark.slow
def test_healthy_replicas_are_healthy(folder: Path) -> None:
    with running("replicas-well", folder, "accumulate"):
        scan = run_scan(("--job", "replicas-well"))
    assert (scan.report["status"], scan.report["findings"], scan.exit_code) == ("healthy", [], 0), scan.text
