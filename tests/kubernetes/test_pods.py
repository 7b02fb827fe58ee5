"""The list of pods: what is read of it, which container trains, and what has become of each pod."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kubernetes.pods import T1, T2, container, disrupted, ended, listed, pod, running, unscheduled, waiting

from pardbg.collectors.jobs.kubernetes.containers import find_trainer
from pardbg.collectors.jobs.kubernetes.fate import Fate, PodFate, tell_fate, tell_restart
from pardbg.collectors.parsing.kubernetes_groups import parse_groups
from pardbg.collectors.parsing.kubernetes_pods import DEFAULT_CONTAINER, parse_pods
from pardbg.collectors.parsing.kubernetes_record import KubernetesPod
from pardbg.watchdog.errors import ParseError

Json = dict[str, Any]


def read(*pods: Json) -> tuple[KubernetesPod, ...]:
    return parse_pods(json.dumps(listed(*pods)).encode())


def fate_of(one: Json) -> PodFate:
    return tell_fate(read(one)[0])


def trainer_of(*containers: Json, **annotations: str) -> str:
    (read_pod,) = read(pod("w-0", *containers, annotations={DEFAULT_CONTAINER: annotations.get("default", "")}))
    trainer = find_trainer(read_pod)
    assert trainer is not None
    return trainer.name


def test_running_pod_is_read() -> None:
    (one,) = read(pod("w-0", container(gpus=8, restarts=2), node="gpu-7"))
    assert (one.name, one.namespace, one.node, one.phase) == ("w-0", "train", "gpu-7", "Running")
    (main,) = one.containers
    assert (main.name, main.has_device, main.is_running, main.restarts) == ("main", True, True, 2)


def test_pod_alone_is_a_list_of_one() -> None:
    alone = {"kind": "Pod", "apiVersion": "v1", **pod("w-0")}
    assert [one.name for one in parse_pods(json.dumps(alone).encode())] == ["w-0"]


def test_pod_without_any_status_has_not_started() -> None:
    bare = {"metadata": {"name": "w-0"}, "spec": {"containers": [{"name": "main"}]}}
    assert fate_of(bare).fate is Fate.NOT_STARTED


@pytest.mark.parametrize(
    "data",
    [b"", b"null", b"[]", b"{}", b'{"items": 1}', b'{"items": [{}]}', b'{"kind": "Pod"}', b"\xff", b'{"items": [{"metadata"'],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(ParseError):
        parse_pods(data)


@given(
    data=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    ["items", "metadata", "name", "spec", "containers", "status", "phase", "kind", "labels", "state"]
                ),
                inner,
            )
        ),
    )
)
def test_no_json_raises_anything_but_parse_error(data: Any) -> None:
    try:
        for one in parse_pods(json.dumps(data).encode()):
            tell_fate(one)
    except ParseError:
        pass


def test_text_of_the_api_stays_on_one_line_and_has_an_end() -> None:
    (one,) = read(pod("w-0", phase="Pending", conditions=(unscheduled("no\nnode\x1b[31m " + "x" * 9999),)))
    assert one.unscheduled.startswith("no node [31m x")
    assert len(one.unscheduled) == 300


@pytest.mark.parametrize(
    ("containers", "default", "expected"),
    [
        ([container("istio-proxy"), container("mine")], "", "mine"),
        ([container("istio-proxy")], "", "istio-proxy"),
        ([container("mine"), container("yours", gpus=8)], "", "yours"),
        ([container("mine", gpus=1), container("yours", gpus=8)], "yours", "yours"),
        ([container("logs"), container("pytorch")], "", "pytorch"),
        ([container("logs"), container("data")], "data", "data"),
        ([container("logs"), container("data")], "", "logs"),
        ([container("trainer"), container("data", gpus=1)], "trainer", "data"),
        ([container("vault-agent", gpus=1), container("mine")], "vault-agent", "mine"),
    ],
)
def test_container_that_trains_is_chosen(containers: list[Json], default: str, expected: str) -> None:
    assert trainer_of(*containers, default=default) == expected


@pytest.mark.parametrize(
    ("resource", "is_device"),
    [
        ("nvidia.com/gpu", True),
        ("nvidia.com/mig-1g.5gb", True),
        ("amd.com/gpu", True),
        ("google.com/tpu", True),
        ("aws.amazon.com/neuroncore", True),
        ("cpu", False),
        ("rdma/hca", False),
        ("hugepages-2Mi", False),
    ],
)
def test_devices_are_told_from_other_resources(resource: str, is_device: bool) -> None:  # noqa: FBT001 - a column of the table
    part = container()
    part["spec"]["resources"] = {"limits": {resource: 1}}
    assert read(pod("w-0", part))[0].containers[0].has_device is is_device


KILLED = container(state=ended(137, "OOMKilled"))
DONE = container(state=ended(0, "Completed"))


@pytest.mark.parametrize(
    ("one", "fate", "words"),
    [
        (pod("p"), Fate.RUNS, ""),
        (pod("p", container(), container("istio-proxy", ended(1, "Error"))), Fate.RUNS, ""),
        (pod("p", DONE, container("istio-proxy")), Fate.COMPLETED, "exit code 0"),
        (pod("p", DONE, phase="Succeeded"), Fate.COMPLETED, "exit code 0"),
        (pod("p", container(state=ended(1, "Error")), phase="Failed"), Fate.FAILED, "container main ended: Error, exit code 1"),
        (pod("p", KILLED, phase="Failed"), Fate.OUT_OF_MEMORY, "OOMKilled, exit code 137"),
        (pod("p", container(state=ended(0, "OOMKilled"))), Fate.OUT_OF_MEMORY, "OOMKilled"),
        (
            pod("p", container(state=waiting("CrashLoopBackOff"), restarts=4, last=ended(137, "OOMKilled"))),
            Fate.OUT_OF_MEMORY,
            "CrashLoopBackOff, 4 restarts",
        ),
        (pod("p", phase="Failed", reason="Evicted", message="The node was low on resource: memory."), Fate.EVICTED, "low on"),
        (pod("p", KILLED, phase="Failed", conditions=(disrupted("PreemptionByScheduler"),)), Fate.PREEMPTED, "Preemption"),
        (pod("p", conditions=(disrupted("EvictionByEvictionAPI"),)), Fate.EVICTED, "EvictionByEvictionAPI"),
        (pod("p", conditions=(disrupted("DeletionByTaintManager"),)), Fate.NODE_LOST, "Taint"),
        (pod("p", phase="Failed", conditions=(disrupted("DeletionByPodGC"),)), Fate.NODE_LOST, "PodGC"),
        (
            pod(
                "p",
                phase="Failed",
                reason="Terminated",
                message="node shutdown",
                conditions=(disrupted("TerminationByKubelet"),),
            ),
            Fate.NODE_LOST,
            "node shutdown",
        ),
        (pod("p", conditions=({**disrupted("PreemptionByScheduler"), "status": "False"},)), Fate.RUNS, ""),
        (pod("p", phase="Unknown", reason="NodeLost"), Fate.NODE_LOST, "NodeLost"),
        (pod("p", phase="Unknown"), Fate.NODE_LOST, "Unknown"),
        (pod("p", phase="Failed", reason="DeadlineExceeded"), Fate.DEADLINE, "DeadlineExceeded"),
        (
            pod("p", container(state={}), phase="Pending", node="", conditions=(unscheduled("0/9 nodes are available"),)),
            Fate.NOT_STARTED,
            "0/9 nodes are available",
        ),
        (pod("p", container(state=waiting("ImagePullBackOff")), phase="Pending"), Fate.NOT_STARTED, "ImagePullBackOff"),
        (
            pod(
                "p",
                container(state=waiting("PodInitializing")),
                phase="Pending",
                initContainerStatuses=[{"name": "wait-for-master", "state": running()}],
            ),
            Fate.NOT_STARTED,
            "init container wait-for-master: it runs",
        ),
    ],
)
def test_what_has_become_of_a_pod(one: Json, fate: Fate, words: str) -> None:
    told = fate_of(one)
    assert told.fate is fate
    assert words in told.why


def test_time_of_an_end_is_that_of_kubernetes_else_of_the_container() -> None:
    assert (
        fate_of(pod("p", container(state=ended(137, "Error", T2)), conditions=(disrupted("PreemptionByScheduler", T1),))).at
        == T1
    )
    assert fate_of(pod("p", container(state=ended(1, "Error", T2)))).at == T2


def test_restarts_of_a_container_that_runs_are_told() -> None:
    (once,) = read(pod("w-0", container(restarts=1, last=ended(137, "OOMKilled", T1))))
    assert (
        tell_restart(once)
        == f"container main of pod w-0 has been restarted once, the last time after OOMKilled, exit code 137 at {T1}"
    )
    assert tell_restart(read(pod("w-1"))[0]) == ""


def test_groups_of_a_cluster_are_read_and_anything_else_is_refused() -> None:
    assert parse_groups(b'{"kind": "APIGroupList", "groups": [{"name": "batch", "versions": []}]}') == {"batch"}
    for data in (b"", b"[]", b'{"groups": [1]}', b"\xff"):
        with pytest.raises(ParseError):
            parse_groups(data)
