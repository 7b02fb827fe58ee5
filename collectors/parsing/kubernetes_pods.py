"""The list of pods that ``kubectl get pods -o json`` writes, as every version since 1.20 does. Pure.

A pod's description holds the environment of its containers, with secrets in it. Only the keys below are ever decoded, and no
error quotes what was read.
"""

import msgspec

from pardbg.collectors.parsing.kubernetes_record import ContainerEnd, KubernetesContainer, KubernetesPod
from pardbg.watchdog.errors import ParseError

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_DISRUPTION, _SCHEDULED = "DisruptionTarget", "PodScheduled"
_DEVICES = ("gpu", "/mig-", "/tpu", "/neuron", "/gaudi", "/ascend")  # nvidia.com/gpu, gpu.intel.com/i915, google.com/tpu, ...
_TEXT_LENGTH = 300


class _Resources(msgspec.Struct):
    limits: dict[str, str | int | float] | None = None
    claims: list[msgspec.Raw] | None = None


class _Container(msgspec.Struct):
    name: str
    resources: _Resources = msgspec.field(default_factory=_Resources)


class _Spec(msgspec.Struct, rename="camel"):
    containers: list[_Container]
    node_name: str = ""


class _Running(msgspec.Struct, rename="camel"):
    started_at: str | None = None


class _Waiting(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _Terminated(msgspec.Struct, rename="camel"):
    exit_code: int = 0
    signal: int | None = None
    reason: str = ""
    finished_at: str | None = None


class _State(msgspec.Struct):
    running: _Running | None = None
    waiting: _Waiting | None = None
    terminated: _Terminated | None = None


class _ContainerStatus(msgspec.Struct, rename="camel"):
    name: str
    restart_count: int = 0
    state: _State = msgspec.field(default_factory=_State)
    last_state: _State = msgspec.field(default_factory=_State)


class _Condition(msgspec.Struct, rename="camel"):
    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[_Condition] | None = None
    container_statuses: list[_ContainerStatus] | None = None
    init_container_statuses: list[_ContainerStatus] | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec
    status: _Status = msgspec.field(default_factory=_Status)


class _List(msgspec.Struct):
    items: list[_Pod]


class _Kind(msgspec.Struct):
    kind: str = ""


def parse_pods(data: bytes) -> tuple[KubernetesPod, ...]:
    """All pods of a list; one pod alone is a list of one.

    Raises:
        ParseError: if it is no JSON, or no list of pods.
    """
    try:
        kind = msgspec.json.decode(data, type=_Kind).kind
        pods = [msgspec.json.decode(data, type=_Pod)] if kind == "Pod" else msgspec.json.decode(data, type=_List).items
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ParseError(f"not what kubectl get pods -o json writes: {error}") from None
    return tuple(map(_read_pod, pods))


def _read_pod(pod: _Pod) -> KubernetesPod:
    status, metadata = pod.status, pod.metadata
    conditions = {condition.type: condition for condition in status.conditions or ()}
    disruption, scheduled = conditions.get(_DISRUPTION), conditions.get(_SCHEDULED)
    is_disrupted = disruption is not None and disruption.status == "True"
    told = {one.name: one for one in status.container_statuses or ()}
    return KubernetesPod(
        name=metadata.name,
        namespace=metadata.namespace,
        node=pod.spec.node_name,
        phase=status.phase,
        reason=_short(status.reason),
        message=_short(status.message),
        disruption=_short(disruption.reason) if disruption is not None and is_disrupted else "",
        disrupted_at=disruption.last_transition_time if disruption is not None and is_disrupted else None,
        unscheduled=_short(scheduled.message or scheduled.reason)
        if scheduled is not None and scheduled.status == "False"
        else "",
        created_at=metadata.creation_timestamp,
        deleted_at=metadata.deletion_timestamp,
        labels=metadata.labels or {},
        default_container=(metadata.annotations or {}).get(DEFAULT_CONTAINER, ""),
        containers=tuple(_read_container(container, told.get(container.name)) for container in pod.spec.containers),
        stuck_init=_find_stuck(status.init_container_statuses or ()),
    )


def _read_container(container: _Container, status: _ContainerStatus | None) -> KubernetesContainer:
    limits = container.resources.limits or {}
    state = status.state if status is not None else _State()
    return KubernetesContainer(
        name=container.name,
        has_device=bool(container.resources.claims) or any(map(_is_device, limits)),
        is_running=state.running is not None,
        started_at=state.running.started_at if state.running is not None else None,
        waits_for=_short(state.waiting.reason) if state.waiting is not None else "",
        end=_read_end(state.terminated),
        restarts=status.restart_count if status is not None else 0,
        last_end=_read_end(status.last_state.terminated) if status is not None else None,
    )


def _is_device(resource: str) -> bool:
    lowered = resource.lower()
    return "/" in lowered and any(word in lowered for word in _DEVICES)


def _read_end(told: _Terminated | None) -> ContainerEnd | None:
    if told is None:
        return None
    return ContainerEnd(exit_code=told.exit_code, signal=told.signal, reason=_short(told.reason), at=told.finished_at)


def _find_stuck(statuses: "list[_ContainerStatus] | tuple[()]") -> str:
    """The first init container that is not done, and why: the pod's own containers wait for it."""
    for status in statuses:
        state = status.state
        if state.terminated is not None and state.terminated.exit_code == 0:
            continue
        if state.waiting is not None and state.waiting.reason == "PodInitializing":
            continue
        why = state.waiting.reason if state.waiting is not None else "it runs" if state.running is not None else "it failed"
        return f"init container {status.name}: {_short(why)}"
    return ""


def _short(text: str) -> str:
    """On one line, printable, of a length for a report."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())[:_TEXT_LENGTH]
