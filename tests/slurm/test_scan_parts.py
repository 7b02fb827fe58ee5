"""`pardbg scan` of the parts of real Slurm jobs, and while Slurm does not answer. The ranks are plain Python that waits."""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest
from tests.slurm.cluster import NOBODY, Cluster

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]

UP_S = 20.0
ENVIRONMENT = "RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID MASTER_ADDR=127.0.0.1 MASTER_PORT=29777"
WAIT = 'import time; print("up", flush=True); time.sleep(600)'
RANKS = f"sh -c 'export {ENVIRONMENT}; exec \"$@\"' - {sys.executable} -c '{WAIT}'"
HET = f"""\
#!/bin/sh
#SBATCH --nodes=1 --ntasks=2 --mem=10
#SBATCH hetjob
#SBATCH --nodes=1 --ntasks=2 --mem=10
srun --mpi=none --het-group=0,1 {RANKS}
"""


def wait_until_up(cluster: Cluster, job: str) -> None:
    log = cluster.work / f"slurm-{job}.out"
    until_s = time.monotonic() + UP_S
    while not log.exists() or log.read_text().count("up") < 4:
        assert time.monotonic() < until_s, cluster.state_of(job)
        time.sleep(0.05)


def scan(cluster: Cluster, *options: str) -> tuple[int, dict[str, Any], str, float]:
    """Exit code, report, what was said, and how long it took."""
    command = cluster.command(sys.executable, "-m", "pardbg", "scan", "--interval", "0.5", "--json", *options, as_uid=NOBODY)
    began_s = time.monotonic()
    done = subprocess.run(command, env=cluster.environment, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr, time.monotonic() - began_s


def test_a_het_job_is_scanned_whole_and_by_component(cluster: Cluster) -> None:
    cluster.wait_until_idle()
    script = cluster.work / "het.sh"
    script.write_text(HET)
    job = cluster.run("sbatch", "--parsable", str(script), as_uid=NOBODY).strip()
    try:
        cluster.wait_for(job, "RUNNING")
        wait_until_up(cluster, job)
        _, whole, errors, _ = scan(cluster, "--job", f"{job}.0")
        assert whole, errors
        assert whole["coverage"]["ranks_seen"] == 4, whole
        assert not any("answered" in note for note in whole["notes"])
        _, part, errors, _ = scan(cluster, "--job", f"{job}+1")
        assert part, errors
        assert part["coverage"]["ranks_seen"] == 2, part
        assert f"pardbg scan --job {job} looks at all of it" in part["notes"][-1]
    finally:
        cluster.run("scancel", job)


def test_wrong_steps_and_a_frozen_controller_are_told_in_time(cluster: Cluster) -> None:
    cluster.wait_until_idle()
    job = cluster.submit(f"srun --mpi=none {RANKS}", "--nodes=2", "--ntasks=4", "--mem=10", as_uid=NOBODY)
    try:
        cluster.wait_for(job, "RUNNING")
        wait_until_up(cluster, job)
        code, _, errors, _ = scan(cluster, "--job", f"{job}.extern")
        assert (code, f"Slurm job {job} runs no step extern now" in errors) == (2, True), errors
        code, _, errors, _ = scan(cluster, "--job", f"{job}.batch")
        assert (code, f"pardbg scan --job {job}.0" in errors) == (2, True), errors
        os.kill(cluster.pid_of("slurmctld"), signal.SIGSTOP)
        try:
            code, report, errors, _ = scan(cluster, "--job", f"{job}.5", "--timeout", "2")
        finally:
            os.kill(cluster.pid_of("slurmctld"), signal.SIGCONT)
        assert (code, report["status"]) == (4, "undetermined"), errors
        assert any("Slurm does not answer: scontrol" in note for note in report["notes"])
        assert report["took_s"] < 2 + 2.5  # without the start; to look at this machine, where others work, too
    finally:
        cluster.run("scancel", job)
