"""What the Kubernetes API says of a pod, as far as it matters here. None and empty are "not said"."""

from pardbg.watchdog.model.base import Noun


class ContainerEnd(Noun, frozen=True, kw_only=True):
    """How a container ended. ``reason`` is Kubernetes' word: ``OOMKilled``, ``Error``, ``Completed``; ``at`` RFC 3339."""

    exit_code: int
    signal: int | None = None
    reason: str = ""
    at: str | None = None

    @property
    def is_good(self) -> bool:
        """Whether it returned with 0."""
        return self.exit_code == 0 and not self.signal and self.reason != "OOMKilled"


class KubernetesContainer(Noun, frozen=True, kw_only=True):
    """One container of a pod.

    Attributes:
        has_device: whether it asks for a GPU or its like.
        waits_for: why it does not run yet, in Kubernetes' word: ``ImagePullBackOff``.
        end: of the run it is in now; ``last_end`` of the run before its last restart.
        started_at: RFC 3339, of a container that runs.
    """

    name: str
    has_device: bool = False
    is_running: bool = False
    started_at: str | None = None
    waits_for: str = ""
    end: ContainerEnd | None = None
    restarts: int = 0
    last_end: ContainerEnd | None = None


class KubernetesPod(Noun, frozen=True, kw_only=True):
    """One pod.

    Attributes:
        node: the machine it was put on, empty if on none.
        phase: ``Pending``, ``Running``, ``Succeeded``, ``Failed`` or ``Unknown``.
        reason: of the whole pod: ``Evicted``, ``NodeLost``, ``DeadlineExceeded``, ...; ``message`` says more.
        disruption: why Kubernetes itself ends it: ``PreemptionByScheduler``, ``EvictionByEvictionAPI``,
            ``DeletionByTaintManager``, ``DeletionByPodGC``, ``TerminationByKubelet``; ``disrupted_at`` RFC 3339.
        unscheduled: why no node is found for it.
        created_at: RFC 3339, as ``deleted_at``, by when it is to be gone.
        default_container: as its annotation says.
        stuck_init: the init container it waits for, and why.
    """

    name: str
    namespace: str = ""
    node: str = ""
    phase: str = ""
    reason: str = ""
    message: str = ""
    disruption: str = ""
    disrupted_at: str | None = None
    unscheduled: str = ""
    created_at: str | None = None
    deleted_at: str | None = None
    labels: dict[str, str] = {}
    default_container: str = ""
    containers: tuple[KubernetesContainer, ...] = ()
    stuck_init: str = ""
