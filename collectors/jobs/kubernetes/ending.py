"""Why a job, or a part of it, has ended, in words for a verdict: what Kubernetes did comes before what ranks did. Pure."""

from collections.abc import Iterable, Sequence

from pardbg.collectors.jobs.kubernetes.fate import BY_KUBERNETES, Fate, PodFate
from pardbg.collectors.jobs.kubernetes.job import KubernetesJob
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.host_names import fold_hosts
from pardbg.watchdog.model.names import Cause

_MOST_NAMED = 8


class KubernetesEnding(Noun, frozen=True, kw_only=True):
    """Why, in one sentence.

    Attributes:
        cause: the contract's word for a dead rank, where it has one.
        is_from_outside: whether Kubernetes, the kernel or a person ended it, so that no rank is to blame for the end.
        claim: a sentence for the report.
        advice: what to try.
        at: RFC 3339 of the first such end, None if not said.
        pods: that ended so.
    """

    fate: Fate
    cause: Cause | None = None
    is_from_outside: bool
    claim: str
    advice: tuple[str, ...] = ()
    at: str | None = None
    pods: tuple[str, ...] = ()


def ending_of(job: KubernetesJob) -> KubernetesEnding | None:
    """Why pods of the job have ended; None if none has, or if all that did have completed and others still run.

    The first end by Kubernetes' hand counts; where there is none, the first of those that failed.
    """
    first = _first(fate for fate in job.ended if fate.fate in BY_KUBERNETES)
    first = first or _first(fate for fate in job.ended if fate.fate in {Fate.DEADLINE, Fate.FAILED})
    if first is None:
        return None if job.running or job.waiting or not job.ended else _completed(job)
    alike = [fate for fate in job.ended if fate.fate is first.fate]
    return KubernetesEnding(
        fate=first.fate,
        cause=_cause_of(first),
        is_from_outside=first.fate in {*BY_KUBERNETES, Fate.DEADLINE},
        claim=f"{_name(alike, job)} {_WORDS[first.fate]}{_place(first)}: {first.why}{_when(first)}{_rest(job)}",
        advice=_ADVICE.get(first.fate, ()),
        at=first.at,
        pods=tuple(fate.pod.name for fate in alike),
    )


_WORDS = {
    Fate.PREEMPTED: "preempted to make room for others",
    Fate.EVICTED: "evicted",
    Fate.NODE_LOST: "lost with the node",
    Fate.OUT_OF_MEMORY: "killed because the container's memory limit was reached",
    Fate.DEADLINE: "ended at the job's deadline",
    Fate.FAILED: "ended in a failure",
}
_CAUSES = {
    Fate.PREEMPTED: Cause.PREEMPTED,
    Fate.EVICTED: Cause.PREEMPTED,
    Fate.NODE_LOST: Cause.NODE_LOST,
    Fate.OUT_OF_MEMORY: Cause.OOM_KILLED,
}
_ADVICE = {
    Fate.PREEMPTED: ("give the job a higher priorityClassName, or have it checkpoint on SIGTERM and restart as a whole",),
    Fate.EVICTED: ("kubectl describe pod says which resource ran out, or who drained the node; set requests equal to limits",),
    Fate.NODE_LOST: ("kubectl describe node says since when; cordon it, and let the operator restart the whole job",),
    Fate.OUT_OF_MEMORY: ("raise the container's memory limit (shared memory and the page cache of /dev/shm count)",),
    Fate.DEADLINE: ("was it hung? pardbg scan while it runs tells; else raise activeDeadlineSeconds",),
    Fate.FAILED: ("kubectl logs POD --previous shows the container's last words",),
}


def _first(fates: Iterable[PodFate]) -> PodFate | None:
    """The earliest; those without a time last."""
    return min(fates, key=lambda fate: (fate.at is None, fate.at or "", fate.pod.name), default=None)


def _cause_of(fate: PodFate) -> Cause | None:
    if fate.fate is not Fate.FAILED or fate.end is None:
        return _CAUSES.get(fate.fate)
    return Cause.SIGNAL if fate.end.signal or fate.end.exit_code > 128 else Cause.EXITED


def _completed(job: KubernetesJob) -> KubernetesEnding:
    last = max((fate.at for fate in job.ended if fate.at), default=None)
    when = f" at {last}" if last else ""
    return KubernetesEnding(
        fate=Fate.COMPLETED, is_from_outside=False, claim=f"Kubernetes job {job.spelled} has completed{when}", at=last
    )


def _name(alike: Sequence[PodFate], job: KubernetesJob) -> str:
    names = [fate.pod.name for fate in alike]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    verb = "was" if len(names) == 1 else "were"
    listed = fold_hosts(names) if len(names) <= _MOST_NAMED else ", ".join(names[:_MOST_NAMED])
    return f"{'pod' if len(names) == 1 else 'pods'} {listed}{more} of Kubernetes job {job.spelled} {verb}"


def _place(fate: PodFate) -> str:
    return f" {fate.pod.node}" if fate.fate is Fate.NODE_LOST and fate.pod.node else ""


def _when(fate: PodFate) -> str:
    return f", at {fate.at}" if fate.at else ""


def _rest(job: KubernetesJob) -> str:
    told = [f"{len(job.running)} of {len(job.fates)} pods still run"] if job.running else []
    told += [f"{len(job.waiting)} wait to be started"] if job.waiting else []
    return f"; {', '.join(told)}" if told else ""
