"""From pods to one `KubernetesJob`: which pods have been replaced by others. Pure."""

from collections.abc import Sequence

from pardbg.collectors.jobs.kubernetes.fate import Fate, PodFate, tell_fate, tell_restart
from pardbg.collectors.jobs.kubernetes.job import KubernetesJob
from pardbg.collectors.jobs.kubernetes.operators import PLACE_LABELS
from pardbg.collectors.parsing.kubernetes_record import KubernetesPod

_Place = tuple[str, ...]
_Age = tuple[str, str]


def build_job(
    namespace: str, name: str, kind: str, pods: Sequence[KubernetesPod], told_by: tuple[str, ...] = ()
) -> KubernetesJob:
    """The job that these pods are."""
    fates = sorted(map(tell_fate, pods), key=lambda fate: fate.pod.name)
    replaced = _find_replaced(fates)
    present = tuple(fate for fate in fates if fate.pod.name not in replaced)
    return KubernetesJob(
        namespace=namespace,
        name=name,
        kind=kind,
        fates=present,
        replaced=tuple(fate for fate in fates if fate.pod.name in replaced),
        restarts=tuple(filter(None, (tell_restart(fate.pod) for fate in present))),
        told_by=told_by,
    )


def _find_replaced(fates: Sequence[PodFate]) -> set[str]:
    """Of those that have ended, the ones whose place another has taken since; a replacement that waits takes none."""
    heirs = [fate.pod for fate in fates if fate.fate is not Fate.NOT_STARTED]
    youngest: dict[_Place, _Age] = {}
    for pod in heirs:
        youngest[_place(pod)] = max(_age(pod), youngest.get(_place(pod), _age(pod)))
    ended = [fate for fate in fates if fate.has_ended]
    in_place = {fate.pod.name for fate in ended if _place(fate.pod) and _age(fate.pod) < youngest[_place(fate.pod)]}
    unplaced = [fate for fate in ended if not _place(fate.pod)]
    return in_place | _find_succeeded(unplaced, sorted(_age(pod) for pod in heirs if not _place(pod)))


def _find_succeeded(ended: Sequence[PodFate], heirs: Sequence[_Age]) -> set[str]:
    """Where nothing tells a pod's place: each that came after an end stands for one end, the first for the first."""
    replaced: set[str] = set()
    left = iter(heirs)
    for fate in sorted((fate for fate in ended if fate.at), key=lambda fate: fate.at or ""):
        if next((True for created, _ in left if created >= (fate.at or "")), False):
            replaced.add(fate.pod.name)
    return replaced


def _place(pod: KubernetesPod) -> _Place:
    labels = tuple(pod.labels.get(label, "") for label in PLACE_LABELS)
    return labels if any(labels) else ()


def _age(pod: KubernetesPod) -> _Age:
    """Sorts the younger after the older: times are UTC texts of one form."""
    return pod.created_at or "", pod.name
