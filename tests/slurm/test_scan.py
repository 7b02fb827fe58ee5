"""`pardbg scan --job ID` by the owner of a real Slurm job, with nothing deployed: while it hangs, and after its end."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.slurm.cluster import NOBODY, Cluster

from pardbg.watchdog.outputs.validation import validate_report

pytest.importorskip("torch", reason="torch is not installed: pip install 'pardbg[demo]'")
pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).parents[1] / "live" / "jobs" / "train.py"
READY_S, SETTLE_S, SCAN_S = 120.0, 1.0, 90.0
STEP = """\
export GLOO_SOCKET_IFNAME=lo OMP_NUM_THREADS=1 READY_FILE={ready} MASTER_ADDR=127.0.0.1 MASTER_PORT={port}
export PYTHONDONTWRITEBYTECODE=1
srun --mpi=none --nodes=2 --ntasks=4 --ntasks-per-node=2 \\
    sh -c 'export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID; exec "$@"' - \\
    {python} {program} --fault {fault}
"""


def _submit(cluster: Cluster, fault: str, *options: str) -> tuple[str, Path]:
    """A job of four ranks on both nodes; its id, and the file that shows that its fault has come."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ready = cluster.work / f"ready-{time.monotonic_ns()}"
    script = STEP.format(ready=ready, port=port, python=sys.executable, program=PROGRAM, fault=fault)
    return cluster.submit(script, "--nodes=2", "--ntasks=4", "--ntasks-per-node=2", *options, as_uid=NOBODY), ready


def _wait_until_hung(cluster: Cluster, job: str, ready: Path) -> None:
    until_s = time.monotonic() + READY_S
    while not ready.exists():
        assert time.monotonic() < until_s, f"{cluster.state_of(job)}: {_output(cluster, job)}"
        time.sleep(0.1)
    time.sleep(SETTLE_S)


def _output(cluster: Cluster, job: str) -> str:
    path = cluster.work / f"slurm-{job}.out"
    return path.read_text(errors="replace")[-2000:] if path.exists() else "no output"


def _scan(cluster: Cluster, *options: str, as_uid: int = NOBODY) -> tuple[int, dict[str, Any], str]:
    """Exit code, report and what was said."""
    command = cluster.command(sys.executable, "-m", "pardbg", "scan", *options, "--json", as_uid=as_uid)
    done = subprocess.run(command, env=cluster.environment, capture_output=True, text=True, timeout=SCAN_S, check=False)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    validate_report(report)
    return done.returncode, report, done.stderr


@pytest.fixture(scope="module")
def hung(cluster: Cluster) -> Iterator[str]:
    """A job that hangs across both nodes: rank 2, on the second one, in its checkpoint."""
    cluster.wait_until_idle()
    job, ready = _submit(cluster, "checkpoint", "--time=10")
    _wait_until_hung(cluster, job, ready)
    yield job
    cluster.run("scancel", job)


def test_owner_is_told_the_rank_its_node_and_its_cause(cluster: Cluster, hung: str) -> None:
    code, report, errors = _scan(cluster, "--job", hung)
    if report["status"] == "undetermined":  # a rank was seen awake just before; the report says what to do: ask again
        assert report["notes"], report
        code, report, errors = _scan(cluster, "--job", hung)
    verdict = report["verdict"]
    assert verdict is not None, (report["notes"], report["unknowns"], report["sampled_at"], errors)
    assert (code, verdict["kind"], verdict["cause"]) == (3, "missing-participant", "checkpoint-io")
    assert [(who["rank"], who["host"]) for who in verdict["culprits"]] == [(2, "n2")]
    assert verdict["victims"] == [0, 1, 3]
    assert report["job"]["source"] == "slurm"
    assert report["coverage"]["by_collector"]["flight-recorder"] == 4, report["unknowns"]
    (action,) = verdict["actions"]
    assert f"srun --jobid={hung} --overlap -N1 -n1 --mem=0 -w n2 sh -c " in action["command"]
    assert cluster.run("sh", "-c", action["command"], as_uid=NOBODY)  # and it works as it is written


def test_root_scans_it_too_by_becoming_the_owner(cluster: Cluster, hung: str) -> None:
    _, report, errors = _scan(cluster, "--job", f"slurm:{hung}", "--attach", "never", as_uid=0)
    assert report["verdict"] is not None, (report, errors)
    assert [who["rank"] for who in report["verdict"]["culprits"]] == [2]


def test_without_one_node_the_answer_says_which_and_blames_nobody_there(cluster: Cluster, hung: str) -> None:
    cluster.kill("n2")
    try:
        code, report, errors = _scan(cluster, "--job", hung, "--timeout", "40")
    finally:
        cluster.start("n2")
        cluster.wait_for(hung, "RUNNING")
    assert "1 of 2 nodes answered, missing n2" in " ".join(report["notes"]), (report, errors)
    assert code == 4
    assert not any(finding["culprits"] for finding in report["findings"])
    unseen = [one for one in report["unknowns"] if one["rank"] in {2, 3} and one["reason"] != "denied"]  # root's other Pythons
    assert {one["host"] for one in unseen} == {"n2"}, report["unknowns"]
    assert [who["rank"] for who in report["verdict"]["candidates"]] == [2, 3]
    assert [action["command"] for action in report["verdict"]["actions"]] == ["scontrol show node n2"]


def test_after_its_time_limit_the_owner_is_told_so(cluster: Cluster, hung: str) -> None:
    cluster.run("scontrol", "update", f"JobId={hung}", "EndTime=now+1")
    cluster.wait_for(hung, "TIMEOUT", deadline_s=90)
    code, report, _ = _scan(cluster, "--job", hung)
    assert (report["status"], report["verdict"], code) == ("failed", None, 4)
    assert f"Slurm job {hung} reached its time limit" in " ".join(report["notes"])


def test_after_scancel_the_owner_is_told_so(cluster: Cluster) -> None:
    job = cluster.submit("srun --mpi=none sleep 600", "--nodes=2", "--ntasks=2", as_uid=NOBODY)
    cluster.wait_for(job, "RUNNING")
    cluster.run("scancel", job, as_uid=NOBODY)
    cluster.wait_for(job, "CANCELLED")
    code, report, _ = _scan(cluster, "--job", job)
    assert (report["status"], report["verdict"], code) == ("failed", None, 4)
    assert f"Slurm job {job} was cancelled" in " ".join(report["notes"])
