"""`pardbg scan --job k8s:train/exp7` from outside: real ranks, each in process namespaces of its own, as in pods."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kubernetes.pods import T1, container, disrupted, pod, unscheduled
from tests.live.jobs.warden import descendants
from tests.live.running import RunningJob, running_job
from tests.live.scanning import Scan

pytest.importorskip("torch", reason="torch is not installed: pip install 'pardbg[demo]'")
pytestmark = [
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("nsenter") is None, reason="only root makes process namespaces"),
]

RANKS = 3
LABELS = {"jobset.sigs.k8s.io/jobset-name": "exp7"}  # its pods' names do not tell the job's
ENVIRONMENT = "POD_NAME=exp7-workers-0-$RANK-x2v4q POD_NAMESPACE=train KUBERNETES_SERVICE_HOST=10.0.0.1"
INTO_A_POD = (
    *("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts", "sh", "-c"),
    f'export {ENVIRONMENT}; hostname exp7-workers-0-$RANK; exec "$@"',
    "-",
)


@pytest.fixture
def pods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningJob]:
    """A job that hangs in three pods, of which rank 2 writes its checkpoint for ever; a fourth pod waits for a node."""
    with running_job(
        "train", "--fault", "checkpoint", folder=tmp_path / "job", ranks=RANKS, launcher="plain", prefix=INTO_A_POD
    ) as job:
        job.wait_until_hung()
        processes = {f"exp7-workers-0-{rank}-x2v4q": next(iter(descendants(pid))) for rank, pid in job.pids.items()}
        listed = [pod(name, container("istio-proxy"), container("pytorch"), labels=LABELS) for name in processes]
        waits = unscheduled("0/9 nodes are available: 9 Insufficient nvidia.com/gpu.")
        listed.append(pod("exp7-monitor-0", container(state={}), phase="Pending", node="", labels=LABELS, conditions=(waits,)))
        cluster = tmp_path / "cluster.json"
        cluster.write_text(json.dumps({"pods": listed, "processes": processes}))
        (tmp_path / "bin").mkdir()
        kubectl = tmp_path / "bin" / "kubectl"
        program = Path(__file__).with_name("kubectl_program.py")
        kubectl.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {program} "$@"\n')
        kubectl.chmod(0o755)
        monkeypatch.setenv("PATH", f"{kubectl.parent}:{os.environ['PATH']}")
        monkeypatch.setenv("TEST_CLUSTER", str(cluster))
        monkeypatch.setenv("PARDBG_REMOTE", f"{sys.executable} -m pardbg")
        yield job


def test_user_outside_is_told_the_rank_its_pod_and_its_cause(pods: RunningJob) -> None:
    scan = Scan.of("scan", "--job", "k8s:train/exp7")
    assert (scan.exit_code, scan.kind, scan.cause) == (3, "missing-participant", "checkpoint-io"), (
        scan.summary,
        pods.last_words(),
    )
    assert [(who["rank"], who["host"]) for who in scan.verdict["culprits"]] == [(2, "exp7-workers-0-2-x2v4q")]
    assert scan.verdict["victims"] == [0, 1]
    assert (scan.report["job"]["source"], scan.report["job"]["id"]) == ("kubernetes", "train/exp7")
    unseen = {unknown["host"]: unknown["detail"] for unknown in scan.report["unknowns"]}
    assert "Insufficient nvidia.com/gpu" in unseen["exp7-monitor-0"]


def test_pod_that_was_preempted_comes_before_what_the_living_do(pods: RunningJob, tmp_path: Path) -> None:
    cluster = json.loads((tmp_path / "cluster.json").read_text())
    lost = pod("exp7-workers-0-3-aaaaa", phase="Failed", labels=LABELS, conditions=(disrupted("PreemptionByScheduler", T1),))
    (tmp_path / "cluster.json").write_text(json.dumps({**cluster, "pods": [*cluster["pods"], lost]}))
    scan = Scan.of("scan", "--job", "k8s:train/exp7", "--attach", "never")
    assert (scan.exit_code, scan.report["status"]) == (3, "hung"), (scan.summary, pods.last_words())
    assert (scan.kind, scan.cause) == ("dead-rank", "preempted")
    assert [who["host"] for who in scan.verdict["culprits"]] == ["exp7-workers-0-3-aaaaa"]
    assert scan.blamed == {None}
