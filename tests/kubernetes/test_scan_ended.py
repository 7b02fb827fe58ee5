"""`pardbg scan --job k8s:train/exp7` when no pod of it runs: the real command and kubectl before a server that behaves."""

import subprocess
import sys

import pytest
from tests.kubernetes.api_server import Api
from tests.kubernetes.pods import T1, container, disrupted, ended, pod, unscheduled
from tests.live.scanning import Scan

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize(
    ("lost", "cause", "words"),
    [
        (
            pod("w-1", phase="Failed", conditions=(disrupted("PreemptionByScheduler", T1),)),
            "preempted",
            "preempted to make room",
        ),
        (
            pod("w-1", phase="Failed", reason="Evicted", message="low on memory"),
            "preempted",
            "was evicted: Evicted: low on memory",
        ),
        (pod("w-1", phase="Unknown", node="gpu-9"), "node-lost", "was lost with the node gpu-9"),
        (pod("w-1", container(state=ended(137, "OOMKilled", T1)), phase="Failed"), "oom-killed", "memory limit was reached"),
    ],
)
def test_what_kubernetes_did_is_the_verdict(api: Api, lost: dict[str, object], cause: str, words: str) -> None:
    waits = unscheduled("0/9 nodes are available")
    api.pods = [
        lost,
        pod("w-0", container(state=ended(1, "Error")), phase="Failed"),
        pod("w-2", container(state={}), phase="Pending", node="", conditions=(waits,)),
    ]
    scan = Scan.of("scan", "--job", "k8s:train/exp7")
    assert (scan.exit_code, scan.report["status"], scan.kind, scan.cause) == (3, "failed", "dead-rank", cause), scan.summary
    assert words in scan.verdict["claim"]
    assert [(who["scope"], who["host"]) for who in scan.verdict["culprits"]] == [("host", "w-1")]
    unseen = {unknown["host"]: unknown["detail"] for unknown in scan.report["unknowns"]}
    assert unseen["w-2"] == "the pod has not started: 0/9 nodes are available"
    assert (scan.report["job"]["id"], scan.report["job"]["source"]) == ("train/exp7", "kubernetes")


def test_failure_of_a_container_is_told_and_blames_nobody(api: Api) -> None:
    api.pods = [pod("w-0", container(state=ended(1, "Error", T1)), phase="Failed")]
    scan = Scan.of("scan", "--job", "k8s:train/exp7")
    assert (scan.report["verdict"], scan.exit_code) == (None, 4)
    assert "container main ended: Error, exit code 1" in " ".join(scan.report["notes"])


def test_job_that_waits_for_nodes_is_no_job_to_scan(api: Api) -> None:
    waits = unscheduled("0/9 nodes are available")
    api.pods = [pod("w-0", container(state={}), phase="Pending", node="", conditions=(waits,))]
    command = [sys.executable, "-m", "pardbg", "scan", "--job", "k8s:train/exp7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "none of the 1 pods of Kubernetes job train/exp7 has started; w-0: 0/9 nodes are available" in done.stderr
