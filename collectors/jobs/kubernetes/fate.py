"""What has become of a pod: it runs, it has not started, or it ended, and by whose hand. Pure."""

from enum import Enum

from pardbg.collectors.jobs.kubernetes.containers import find_trainer
from pardbg.collectors.parsing.kubernetes_record import ContainerEnd, KubernetesPod
from pardbg.watchdog.model.base import Noun


class Fate(str, Enum):
    """Of a pod, or of the container that trains in it."""

    RUNS = "runs"
    NOT_STARTED = "not-started"
    PREEMPTED = "preempted"
    EVICTED = "evicted"
    NODE_LOST = "node-lost"
    OUT_OF_MEMORY = "out-of-memory"
    DEADLINE = "deadline"
    FAILED = "failed"
    COMPLETED = "completed"


BY_KUBERNETES = frozenset({Fate.PREEMPTED, Fate.EVICTED, Fate.NODE_LOST, Fate.OUT_OF_MEMORY})
"""Ends that no rank is to blame for: they come before anything that ranks did meanwhile."""

_DISRUPTIONS = {
    "PreemptionByScheduler": Fate.PREEMPTED,
    "PreemptionByKubeScheduler": Fate.PREEMPTED,  # 1.25
    "EvictionByEvictionAPI": Fate.EVICTED,
    "TerminationByKubelet": Fate.EVICTED,
    "DeletionByTaintManager": Fate.NODE_LOST,
    "DeletionByPodGC": Fate.NODE_LOST,
}
_REASONS = {
    "Preempting": Fate.PREEMPTED,
    "Preempted": Fate.PREEMPTED,
    "Evicted": Fate.EVICTED,
    "NodeLost": Fate.NODE_LOST,
    "NodeShutdown": Fate.NODE_LOST,
    "Shutdown": Fate.NODE_LOST,
    "Terminated": Fate.NODE_LOST,  # by the kubelet, at a graceful shutdown of the node
    "DeadlineExceeded": Fate.DEADLINE,
}
_PHASES = {"Unknown": Fate.NODE_LOST, "Failed": Fate.FAILED, "Succeeded": Fate.COMPLETED}
_SHUTDOWN = "node shutdown"  # of TerminationByKubelet: either the node's pressure or its shutdown


class PodFate(Noun, frozen=True, kw_only=True):
    """What has become of a pod. ``why`` is in words; ``at`` RFC 3339; ``end`` of the container that trained."""

    pod: KubernetesPod
    fate: Fate
    container: str = ""
    why: str = ""
    at: str | None = None
    end: ContainerEnd | None = None

    @property
    def has_ended(self) -> bool:
        """Whether it has run, or was to run, and does no more."""
        return self.fate not in {Fate.RUNS, Fate.NOT_STARTED}


def tell_fate(pod: KubernetesPod) -> PodFate:
    """By the pod's own word first, then by its container that trains."""
    trainer = find_trainer(pod)
    name = trainer.name if trainer is not None else ""
    end = trainer.end if trainer is not None else None
    by_kubernetes = _told_by_kubernetes(pod)
    if by_kubernetes is not None:
        at = pod.disrupted_at or (end.at if end is not None else None)
        return PodFate(pod=pod, fate=by_kubernetes, container=name, why=_words(pod), at=at, end=end)
    if end is not None:
        return PodFate(pod=pod, fate=_fate_of(end), container=name, why=_tell_end(name, end), at=end.at, end=end)
    if trainer is not None and trainer.is_running and pod.phase != "Unknown":
        return PodFate(pod=pod, fate=Fate.RUNS, container=name, at=trainer.started_at)
    if trainer is not None and trainer.last_end is not None and not trainer.last_end.is_good:
        last = trainer.last_end  # it crashes again and again, and waits for its next turn
        why = f"{_tell_end(name, last)} ({trainer.waits_for or 'starting'}, {trainer.restarts} restarts)"
        return PodFate(pod=pod, fate=_fate_of(last), container=name, why=why, at=last.at, end=last)
    fate = _PHASES.get(pod.phase, Fate.NOT_STARTED)
    why = _why_not_started(pod) if fate is Fate.NOT_STARTED else _words(pod) or f"its phase is {pod.phase}"
    return PodFate(pod=pod, fate=fate, container=name, why=why)


def tell_restart(pod: KubernetesPod) -> str:
    """Of a container that runs, how its run before ended; empty if it is in its first."""
    trainer = find_trainer(pod)
    if trainer is None or not trainer.is_running or not trainer.restarts:
        return ""
    times = "once" if trainer.restarts == 1 else f"{trainer.restarts} times"
    last = f", the last time after {_tell_end('', trainer.last_end)}" if trainer.last_end is not None else ""
    when = f" at {trainer.last_end.at}" if trainer.last_end is not None and trainer.last_end.at else ""
    return f"container {trainer.name} of pod {pod.name} has been restarted {times}{last}{when}"


def _told_by_kubernetes(pod: KubernetesPod) -> Fate | None:
    fate = _DISRUPTIONS.get(pod.disruption)
    if fate is Fate.EVICTED and _SHUTDOWN in pod.message.lower():
        return Fate.NODE_LOST
    if fate is None and pod.phase in {"Failed", "Unknown", "Running"}:
        return _REASONS.get(pod.reason)
    return fate


def _fate_of(end: ContainerEnd) -> Fate:
    if end.reason == "OOMKilled":
        return Fate.OUT_OF_MEMORY
    return Fate.COMPLETED if end.is_good else Fate.FAILED


def _tell_end(container: str, end: ContainerEnd) -> str:
    code = f"signal {end.signal}" if end.signal else f"exit code {end.exit_code}"
    words = f"{end.reason}, {code}" if end.reason else code
    return f"container {container} ended: {words}" if container else words


def _words(pod: KubernetesPod) -> str:
    return ": ".join(filter(None, (pod.disruption or pod.reason, pod.message)))


def _why_not_started(pod: KubernetesPod) -> str:
    trainer = find_trainer(pod)
    waits_for = trainer.waits_for if trainer is not None and trainer.waits_for not in {"", "PodInitializing"} else ""
    return pod.unscheduled or pod.stuck_init or waits_for or _words(pod) or f"it is {pod.phase.lower() or 'not known'}"
