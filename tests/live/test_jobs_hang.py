"""The real jobs of the live tests end with the tests, whatever state both are in."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.live.running import JobError, process_state, running_job, start_ticks

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[2]
ENDS_WITHIN_S = 10.0  # 0.2 s on two idle cores
HOLDER = """
import sys, time
from pathlib import Path
from tests.live.running import running_job
with running_job("train", "--fault", "loader", folder=Path(sys.argv[1])) as job:
    job.wait_until_hung()
    job.stop(1)
    print(*job.processes, flush=True)
    time.sleep(600)
"""


def test_killed_tests_leave_no_process_of_their_job_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        started = {int(pid): start_ticks(int(pid)) for pid in holder.stdout.readline().split()}
        holder.send_signal(signal.SIGKILL)

    deadline = time.monotonic() + ENDS_WITHIN_S
    while any(start_ticks(pid) == ticks for pid, ticks in started.items()) and time.monotonic() < deadline:
        time.sleep(0.05)

    assert len(started) == 9, "torchrun, four ranks, a loader worker each"
    assert {pid for pid, ticks in started.items() if start_ticks(pid) == ticks} == set()


def test_killed_rank_of_a_plain_job_is_a_zombie_until_it_is_reaped(tmp_path: Path) -> None:
    with running_job("train", "--fault", "killed-store", folder=tmp_path, launcher="plain") as job:
        job.wait_until_hung()
        assert [process_state(pid) for pid in job.pids.values()] == ["S", "S", "Z", "S"]

        job.reap(2)
        assert [process_state(pid) for pid in job.pids.values()] == ["S", "S", None, "S"]


def test_job_that_ends_before_its_fault_is_explained_by_its_logs(tmp_path: Path) -> None:
    with (
        running_job("train", "--fault", "nonsense", folder=tmp_path, ranks=1, launcher="plain") as job,
        pytest.raises(JobError, match="invalid choice: 'nonsense'"),
    ):
        job.wait_until_hung()
