"""How pods that ended are told: Kubernetes' own hand before failures, the first before those that followed, no replaced one."""

import json
from typing import Any

import pytest
from tests.kubernetes.pods import T0, T1, T2, T3, container, disrupted, ended, listed, pod, unscheduled

from pardbg.collectors.jobs.kubernetes.building import build_job
from pardbg.collectors.jobs.kubernetes.ending import KubernetesEnding, ending_of
from pardbg.collectors.jobs.kubernetes.fate import Fate
from pardbg.collectors.jobs.kubernetes.job import KubernetesJob
from pardbg.collectors.parsing.kubernetes_pods import parse_pods
from pardbg.watchdog.model.names import AbsenceReason, Cause

Json = dict[str, Any]
KILLED = container(state=ended(137, "OOMKilled", T1))
FAILED = container(state=ended(1, "Error", T2))
DONE = container(state=ended(0, "Completed", T2))


def job_of(*pods: Json) -> KubernetesJob:
    return build_job("train", "exp7", "Job", parse_pods(json.dumps(listed(*pods)).encode()))


def ending(*pods: Json) -> KubernetesEnding:
    told = ending_of(job_of(*pods))
    assert told is not None
    return told


def test_job_that_runs_has_no_ending() -> None:
    assert ending_of(job_of(pod("w-0"), pod("w-1"))) is None


def test_job_of_which_a_part_has_completed_has_no_ending_yet() -> None:
    assert ending_of(job_of(pod("w-0"), pod("w-1", DONE, phase="Succeeded"))) is None


def test_job_that_has_completed_says_when() -> None:
    told = ending(pod("w-0", DONE, phase="Succeeded"))
    assert (told.fate, told.is_from_outside, told.claim) == (
        Fate.COMPLETED,
        False,
        f"Kubernetes job train/exp7 has completed at {T2}",
    )


@pytest.mark.parametrize(
    ("lost", "fate", "cause"),
    [
        (pod("w-1", conditions=(disrupted("PreemptionByScheduler", T3),)), Fate.PREEMPTED, Cause.PREEMPTED),
        (pod("w-1", phase="Failed", reason="Evicted"), Fate.EVICTED, Cause.PREEMPTED),
        (pod("w-1", conditions=(disrupted("DeletionByTaintManager", T3),)), Fate.NODE_LOST, Cause.NODE_LOST),
        (pod("w-1", container(state=ended(137, "OOMKilled", T3)), phase="Failed"), Fate.OUT_OF_MEMORY, Cause.OOM_KILLED),
    ],
)
def test_what_kubernetes_did_comes_before_failures_that_were_earlier(lost: Json, fate: Fate, cause: Cause) -> None:
    told = ending(pod("w-0", FAILED, phase="Failed"), lost, pod("w-2"))
    assert (told.fate, told.cause, told.is_from_outside, told.pods) == (fate, cause, True, ("w-1",))
    assert "1 of 3 pods still run" in told.claim


def test_first_of_several_ends_counts() -> None:
    told = ending(
        pod("w-0", phase="Failed", conditions=(disrupted("PreemptionByScheduler", T2),)), pod("w-1", KILLED, phase="Failed")
    )
    assert (told.fate, told.at) == (Fate.OUT_OF_MEMORY, T1)


@pytest.mark.parametrize(("code", "cause"), [(1, Cause.EXITED), (137, Cause.SIGNAL)])
def test_failure_is_a_ranks_own(code: int, cause: Cause) -> None:
    told = ending(pod("w-0", container(state=ended(code, "Error")), phase="Failed"))
    assert (told.fate, told.cause, told.is_from_outside) == (Fate.FAILED, cause, False)


def test_several_pods_are_folded_in_the_claim() -> None:
    told = ending(*(pod(f"w-{number}", phase="Failed", reason="Evicted", message="low on memory") for number in range(4)))
    assert told.claim == "pods w-[0-3] of Kubernetes job train/exp7 were evicted: Evicted: low on memory"


def test_lost_node_is_named() -> None:
    told = ending(pod("w-0", node="gpu-9", conditions=(disrupted("DeletionByTaintManager", T2),)), pod("w-1"))
    assert "was lost with the node gpu-9" in told.claim


@pytest.mark.parametrize("labels", [{"batch.kubernetes.io/job-completion-index": "1"}, {}])
def test_pod_that_was_replaced_is_history(labels: Json) -> None:
    own = {"job-name": "exp7", **labels}
    job = job_of(pod("w-1-aaaaa", KILLED, phase="Failed", labels=own), pod("w-1-bbbbb", labels=own, created=T2))
    assert ending_of(job) is None
    assert [fate.pod.name for fate in job.replaced] == ["w-1-aaaaa"]
    assert job.unreached == {}


def test_replacement_that_waits_for_a_node_replaces_nothing() -> None:
    own = {"job-name": "exp7", "batch.kubernetes.io/job-completion-index": "1"}
    job = job_of(
        pod("w-1-aaaaa", phase="Failed", labels=own, conditions=(disrupted("PreemptionByScheduler"),)),
        pod(
            "w-1-bbbbb",
            container(state={}),
            phase="Pending",
            node="",
            labels=own,
            created=T3,
            conditions=(unscheduled("0/9 nodes"),),
        ),
        pod("w-0"),
    )
    told = ending_of(job)
    assert told is not None
    assert told.claim.endswith(f"at {T2}; 1 of 3 pods still run, 1 wait to be started")
    assert job.unreached["w-1-bbbbb"].detail == "the pod has not started: 0/9 nodes"
    assert job.unreached["w-1-aaaaa"].reason is AbsenceReason.GONE


def test_one_replacement_stands_for_one_end() -> None:
    job = job_of(
        pod("a", KILLED, phase="Failed", created=T0), pod("b", KILLED, phase="Failed", created=T0), pod("c", created=T2)
    )
    assert [fate.pod.name for fate in job.ended] == ["b"]
