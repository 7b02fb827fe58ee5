"""What the Kubernetes API knows of the job that a user means: one short question, then one for each kind of job until one hits.

A list of pods by label makes the API server look at every pod of the namespace, of which there may be thousands, before it
sends the few that match. So:

1. ``kubectl get --raw /apis`` says which kinds of job the cluster has at all; the answer is small, made ahead, and anybody may
   have it (``kubectl api-versions`` would throw kubectl's own cache away). Kinds that are not installed are not asked for.
2. ``kubectl get pods -l LABEL=NAME`` for each that is left, most common first, until one has pods: a Job costs one such
   question, others two to four on most clusters. Pods come in pages of `_PAGE`.
3. If none has any: ``kubectl get pod NAME``, which looks up one key; a job may be a single pod.

Cost: 50 to 100 ms a question, all within one deadline; after one that was not allowed, or had no answer, nothing more is asked.
Nothing is retried, nothing stays behind.
"""

import re

from pardbg.collectors.jobs.kubernetes.asking import ask
from pardbg.collectors.jobs.kubernetes.building import build_job
from pardbg.collectors.jobs.kubernetes.job import KubernetesJob
from pardbg.collectors.jobs.kubernetes.operators import JOB_KINDS, JobKind
from pardbg.collectors.jobs.kubernetes.query import MOST_LABEL_LENGTH, KubernetesQuery, read_query
from pardbg.collectors.jobs.own_command import Answer
from pardbg.collectors.parsing.kubernetes_groups import parse_groups
from pardbg.collectors.parsing.kubernetes_pods import parse_pods
from pardbg.collectors.parsing.kubernetes_record import KubernetesPod
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason

_PAGE = 500
_OBJECT = re.compile(r"[a-z0-9.-]+/(?P<name>[a-z0-9.-]{1,63})", re.ASCII)
_ABSENT = frozenset({AbsenceReason.GONE, AbsenceReason.UNSUPPORTED})


def find_kubernetes_job(text: str, until_s: float) -> KubernetesJob | Absence:
    """Asks the API for one job. Cost and questions: see the module.

    Args:
        text: ``namespace/name``.
        until_s: deadline for everything together, on the monotonic clock.

    Returns:
        The job; else why not: ``gone`` means that the API answers and no pod belongs to such a job.
    """
    query = read_query(text)
    if query is None:
        return Absence(
            reason=AbsenceReason.UNSUPPORTED,
            detail=f"{text!r} is no name of a Kubernetes job, such as train/exp7 (namespace/name)",
        )
    kinds = _ask_kinds(until_s)
    if isinstance(kinds, Absence):
        return kinds
    for kind in kinds if len(query.name) <= MOST_LABEL_LENGTH else ():
        found = _ask_kind(query, kind, until_s)
        if isinstance(found, KubernetesJob) or (found is not None and found.reason not in _ABSENT):
            return found
    return _ask_pod(query, kinds, until_s)


def _ask_kinds(until_s: float) -> tuple[JobKind, ...] | Absence:
    """Those that the cluster serves; all if it does not say."""
    answer = ask(("get", "--raw", "/apis"), until_s)
    if isinstance(answer, Absence):
        return JOB_KINDS if answer.reason in {AbsenceReason.DENIED, AbsenceReason.UNREADABLE} else answer
    try:
        groups = parse_groups(answer.output)
    except ParseError:
        return JOB_KINDS
    return tuple(kind for kind in JOB_KINDS if not kind.group or kind.group in groups)


def _ask_kind(query: KubernetesQuery, kind: JobKind, until_s: float) -> KubernetesJob | Absence | None:
    """The job if it is of this kind; None if not."""
    selector = f"{kind.label}={query.name}"
    if kind.through is not None:
        between = (kind.through.kind, f"--selector={kind.through.label}={query.name}", "--output=name")
        answer = ask(("get", *between, f"--namespace={query.namespace}"), until_s)
        if isinstance(answer, Absence):
            return None if answer.reason is AbsenceReason.DENIED else answer
        lines = answer.output.decode(errors="replace").split()
        names = [match["name"] for line in lines if (match := _OBJECT.fullmatch(line))]
        if not names:
            return None
        selector = f"{kind.label} in ({','.join(names)})"
    words = (f"--namespace={query.namespace}", f"--selector={selector}", "--output=json", f"--chunk-size={_PAGE}")
    return _read(ask(("get", "pods", *words), until_s), query, kind.spelled)


def _ask_pod(query: KubernetesQuery, kinds: tuple[JobKind, ...], until_s: float) -> KubernetesJob | Absence:
    words = (query.name, f"--namespace={query.namespace}", "--ignore-not-found", "--output=json")
    found = _read(ask(("get", "pod", *words), until_s), query, "pod")
    if found is not None and not (isinstance(found, Absence) and found.reason in _ABSENT):
        return found
    labels = ", ".join(dict.fromkeys(kind.label for kind in kinds))
    return Absence(
        reason=AbsenceReason.GONE,
        detail=f"no pod in namespace {query.namespace} belongs to a job {query.name}: none has that name, or a label of "
        f"{labels} with that value; the pods of a job that has ended may be deleted already",
    )


def _read(answer: Answer | Absence, query: KubernetesQuery, kind: str) -> KubernetesJob | Absence | None:
    if isinstance(answer, Absence):
        return answer
    try:
        pods: tuple[KubernetesPod, ...] = parse_pods(answer.output) if answer.output.strip() else ()
    except ParseError as error:
        return Absence(reason=AbsenceReason.UNREADABLE, detail=f"{answer.command}: {error}")
    return build_job(query.namespace, query.name, kind, pods, (answer.command,)) if pods else None
