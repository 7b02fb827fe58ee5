"""Pods through `kubectl exec`: one client a pod; a pod is a node, by its own name.

Pods have their own file systems, so that pardbg is looked for on the container's PATH unless the user says where it is.
"""

import os
import re
from collections.abc import Iterable

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.remote import REMOTE_VARIABLE, collect_command
from pardbg.watchdog.transport.way import NOT_THERE, Launch, Sign, Way

MOST_STARTING = 16  # each is a TLS handshake with the API server, and a process of 50 MB here

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")  # of pods, containers and namespaces
_SIGNS = (
    Sign(
        words=re.compile(r"[Ff]orbidden|Unauthorized|must be logged in"),
        reason=AbsenceReason.DENIED,
        advice="the verb is `create` on `pods/exec`: see kubectl auth can-i create pods/exec",
    ),
    Sign(
        words=re.compile(r"executable file not found|no such file or directory|No module named|not found in \$PATH"),
        reason=AbsenceReason.NOT_INSTALLED,
        advice="pardbg must be in the container's image; what starts it there is --remote-command, or PARDBG_REMOTE",
    ),
    Sign(
        words=re.compile(r"NotFound|container not found|completed pod|not found|not running|is not valid for pod"),
        reason=AbsenceReason.GONE,
    ),
    Sign(
        words=re.compile(r"Unable to connect|refused|timeout|timed out|no such host|unreachable|error dialing backend"),
        reason=AbsenceReason.UNREACHABLE,
    ),
    NOT_THERE,
)


class Pod(Noun, frozen=True, kw_only=True):
    """Where a rank's container is. ``container`` empty: the pod's default one."""

    name: str
    namespace: str = ""
    container: str = ""


def through_kubectl(
    pods: Iterable[Pod],
    command: tuple[str, ...] | None = None,
    program: tuple[str, ...] = ("kubectl",),
) -> Way:
    """One kubectl client a pod.

    Args:
        pods: each with a name of its own.
        command: what starts `pardbg collect` in the container.
        program: kubectl and its own options, e.g. ``("kubectl", "--context", "lab")``.

    Raises:
        InputError: for a name that Kubernetes would not allow.
    """
    words = command or (collect_command() if os.environ.get(REMOTE_VARIABLE) else ("pardbg", "collect"))
    launches = tuple(Launch(nodes=(pod.name,), command=(*program, *_exec(pod), *words, "--node", pod.name)) for pod in pods)
    return Way(name="kubectl", launches=launches, most_starting=MOST_STARTING, signs=_SIGNS)


def _exec(pod: Pod) -> list[str]:
    for name in (pod.name, pod.namespace, pod.container):
        if name and not _NAME.fullmatch(name):
            raise InputError(f"{name!r} is no name of Kubernetes", remedy="see kubectl get pods")
    where = ["--namespace", pod.namespace] if pod.namespace else []
    which = ["--container", pod.container] if pod.container else []
    return ["exec", "--stdin", *where, pod.name, *which, "--"]
