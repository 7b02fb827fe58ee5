"""A job of Kubernetes', put together from what its API says of its pods."""

from functools import cached_property

from pardbg.collectors.jobs.kubernetes.fate import Fate, PodFate
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason


class KubernetesJob(Noun, frozen=True, kw_only=True, dict=True):
    """One job.

    Attributes:
        namespace: with ``name`` the id that people type.
        kind: what kind of job, in words.
        fates: what has become of each pod, by name; of a pod that was replaced and its replacement the latter only.
        replaced: how those ended that others have replaced.
        restarts: containers that run again after an end, in words.
        told_by: the commands that said so.
    """

    namespace: str
    name: str
    kind: str = ""
    fates: tuple[PodFate, ...] = ()
    replaced: tuple[PodFate, ...] = ()
    restarts: tuple[str, ...] = ()
    told_by: tuple[str, ...] = ()

    @property
    def spelled(self) -> str:
        """As people type it."""
        return f"{self.namespace}/{self.name}"

    @cached_property
    def running(self) -> tuple[PodFate, ...]:
        """Those in which `pardbg collect` can be started."""
        return tuple(fate for fate in self.fates if fate.fate is Fate.RUNS)

    @cached_property
    def waiting(self) -> tuple[PodFate, ...]:
        """Those that have not started."""
        return tuple(fate for fate in self.fates if fate.fate is Fate.NOT_STARTED)

    @cached_property
    def ended(self) -> tuple[PodFate, ...]:
        """Those that run no more, and that nothing has replaced."""
        return tuple(fate for fate in self.fates if fate.has_ended)

    @property
    def unreached(self) -> dict[str, Absence]:
        """The pods that cannot be asked, by name, and why."""
        return {fate.pod.name: _absence(fate) for fate in self.fates if fate.fate is not Fate.RUNS}


def _absence(fate: PodFate) -> Absence:
    where = f" on {fate.pod.node}" if fate.pod.node else ""
    if fate.fate is Fate.NOT_STARTED:
        return Absence(reason=AbsenceReason.EMPTY, detail=f"the pod has not started{where}: {fate.why}")
    reason = AbsenceReason.UNREACHABLE if fate.fate is Fate.NODE_LOST else AbsenceReason.GONE
    return Absence(reason=reason, detail=f"Kubernetes says {fate.fate.value}{where}: {fate.why}")
