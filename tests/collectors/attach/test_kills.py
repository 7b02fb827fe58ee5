"""Those who attach are killed at random moments: whom they attach to comes to its right end all the same."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pardbg.collectors.probe.places import memory_root
from tests.live.running import RunningJob, process_state, running_job, start_ticks

pytestmark = [
    pytest.mark.skipif(os.uname().machine != "x86_64" or os.geteuid() != 0, reason="shots are for x86_64, as root"),
]

DRIVER = str(Path(__file__).with_name("killing_whole.py"))
ROOT = Path(memory_root(0, {}))
SOON_S = 20.0

Record = Callable[[str, object], None]


def run_driver(what: str, kills: int, record_property: Record) -> None:
    paths = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-u", DRIVER, what, str(kills)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": paths})
    record_property("told", done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kills", [15, pytest.param(2000, marks=pytest.mark.slow)])
def test_kills_of_shooters_do_no_harm_to_threads_that_fight_for_the_interpreter_lock(
    kills: int, record_property: Record
) -> None:
    run_driver("counting", kills, record_property)


@pytest.mark.live
@pytest.mark.slow
def test_kills_of_a_process_that_attaches_and_of_its_child_do_no_harm_to_ranks(record_property: Record) -> None:
    """A few of these are in `test_attaching.py`."""
    pytest.importorskip("torch", reason="torch is not installed: pip install 'pardbg[demo]'")
    run_driver("ranks", 2000, record_property)


@pytest.mark.live
@pytest.mark.slow
def test_killed_scans_change_nothing_of_a_job(tmp_path: Path, record_property: Record) -> None:
    """Whole process groups of scans that attach: the job ends as one that nobody scans, and nothing stays of them."""
    pytest.importorskip("torch", reason="torch is not installed: pip install 'pardbg[demo]'")
    last_words: dict[str, list[tuple[str, str]]] = {}
    for name in ("scanned", "alone"):
        with running_job("train", "--fault", "none", "--steps", "2500", ranks=3, folder=tmp_path / name, job_id=name) as job:
            job.wait_until_hung(settle_s=0)
            if name == "scanned":
                record_property("kills", killed := _kill_scans(job))
                assert killed >= 60
            job.wait_until_ended(deadline_s=600)
            last_words[name] = re.findall(r"\[rank(\d)\] INFO step 2499 loss ([\d.]+)", job.last_words())
    assert len(last_words["alone"]) == 1  # rank 0 logs it
    assert last_words["scanned"] == last_words["alone"]


def _kill_scans(job: RunningJob) -> int:
    """Kills scans for as long as the job trains. Returns how many."""
    dice, killed, longest_s = random.Random(4), 0, 3.0
    pid = next(iter(job.pids.values()))
    folders = [ROOT / f"{rank}-{start_ticks(rank)}" for rank in job.pids.values()]
    command = [sys.executable, "-m", "pardbg", "scan", "--pid", str(pid), "--attach", "always", "--interval", "0.3"]
    while process_state(job.launcher_pid or 0) not in {"Z", None} and process_state(pid) not in {"Z", None}:
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0) as scan:
            try:
                began_s = time.monotonic()
                scan.wait(timeout=dice.uniform(0.2, longest_s))
                longest_s = time.monotonic() - began_s
            except subprocess.TimeoutExpired:
                os.killpg(scan.pid, signal.SIGKILL)
                killed += 1
        assert "T" not in {process_state(rank) for rank in job.pids.values()}
    until_s = time.monotonic() + SOON_S
    while any(folder.exists() for folder in folders):
        assert time.monotonic() < until_s, folders
        time.sleep(0.05)
    return killed
