"""Pods as the API describes them, with what a test wants to be so."""

from typing import Any

Json = dict[str, Any]

T0, T1, T2, T3 = (f"2026-11-30T10:0{minute}:00Z" for minute in range(4))
SECRET = "hunter2"  # noqa: S105 - in the environment of every container here, and nowhere in what we say


def running(at: str = T0) -> Json:
    """The state of a container that runs."""
    return {"running": {"startedAt": at}}


def waiting(reason: str, message: str = "") -> Json:
    """... that does not run yet."""
    return {"waiting": {"reason": reason, "message": message}}


def ended(code: int, reason: str, at: str = T2, **more: Any) -> Json:
    """... that has ended."""
    return {"terminated": {"exitCode": code, "reason": reason, "startedAt": T0, "finishedAt": at, "containerID": "x", **more}}


def disrupted(reason: str, at: str = T2) -> Json:
    """The condition of a pod that Kubernetes itself ends."""
    return {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "as told", "lastTransitionTime": at}


def unscheduled(message: str) -> Json:
    """The condition of a pod for which there is no node."""
    return {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message, "lastTransitionTime": T0}


def container(
    name: str = "main", state: Json | None = None, *, gpus: int = 0, restarts: int = 0, last: Json | None = None
) -> Json:
    """Specification and status of one container, which `pod` takes apart."""
    limits = {"limits": {"nvidia.com/gpu": str(gpus), "cpu": "8"}} if gpus else {"limits": {"cpu": "1"}}
    return {
        "spec": {"name": name, "image": "train:1", "resources": limits, "env": [{"name": "API_KEY", "value": SECRET}]},
        "status": {
            "name": name,
            "restartCount": restarts,
            "state": running() if state is None else state,
            "lastState": last or {},
            "image": "train:1",
        },
    }


def pod(
    name: str,
    *containers: Json,
    phase: str = "Running",
    labels: Json | None = None,
    node: str = "gpu-1",
    created: str = T0,
    conditions: tuple[Json, ...] = (),
    annotations: Json | None = None,
    **status: Any,
) -> Json:
    """One pod of namespace ``train``; by default it runs, with one container."""
    parts = containers or (container(),)
    return {
        "metadata": {
            "name": name,
            "namespace": "train",
            "uid": f"uid-{name}",
            "labels": {"job-name": "exp7"} if labels is None else labels,
            "annotations": annotations or {},
            "creationTimestamp": created,
        },
        "spec": {"containers": [part["spec"] for part in parts], **({"nodeName": node} if node else {})},
        "status": {
            "phase": phase,
            "conditions": list(conditions) or None,
            "containerStatuses": [part["status"] for part in parts],
            **status,
        },
    }


def listed(*pods: Json) -> Json:
    """A list as kubectl writes it."""
    return {"apiVersion": "v1", "kind": "List", "items": list(pods), "metadata": {"resourceVersion": ""}}
