"""Runs the user's own kubectl, which asks the API, and gives what it says, or why it says nothing. Never raises, never hangs.

Cost: 50 to 100 ms of processor time here, and one request (two small ones more where kubectl does not yet know the cluster,
and its cache in ``~/.kube/cache`` is written). kubectl runs as `own_command.py` says: it and what it started (a plugin for
credentials) are killed at its deadline. Nothing stays behind.
"""

import os
import re
import shutil
import time
from collections.abc import Mapping

from pardbg.collectors.jobs.own_command import ERROR_LENGTH, Answer, Command, run
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason

PROGRAM = "kubectl"
MOST_OUTPUT_BYTES = 256 * 1024**2  # some 10 KB a pod
_OURS = re.compile(r" --(?:request-timeout|chunk-size)=\S+")
_NOISE = re.compile(r"[EWIF]\d{4} |Warning: |W\d{4}")  # what the client logs of its own doings
_REASONS = (
    (
        AbsenceReason.SWITCHED_OFF,
        ("localhost:8080", "current-context", "no configuration has been provided", "context was not found"),
    ),
    (AbsenceReason.DENIED, ("forbidden", "unauthorized", "must be logged in", "getting credentials", "certificate")),
    (AbsenceReason.TIMED_OUT, ("timed out", "timeout", "deadline exceeded", "toomanyrequests", "too many requests")),
    (
        AbsenceReason.UNREACHABLE,
        ("refused", "unable to connect", "no such host", "unreachable", "serviceunavailable", "connection reset", "eof"),
    ),
    (AbsenceReason.GONE, ("notfound",)),
    (AbsenceReason.UNSUPPORTED, ("unknown flag", "unknown command", "doesn't have a resource type", "no matches for kind")),
)


def ask(arguments: tuple[str, ...], until_s: float, environment: Mapping[str, str] = os.environ) -> Answer | Absence:
    """Runs kubectl to its end.

    Args:
        arguments: what follows ``kubectl``.
        until_s: deadline, on the monotonic clock.
        environment: ours: it says where the cluster is and who the user is there; only the language is changed.
    """
    spelled = _OURS.sub("", " ".join((PROGRAM, *arguments)))
    program = shutil.which(PROGRAM, path=environment.get("PATH"))
    if program is None:
        return Absence(reason=AbsenceReason.NOT_INSTALLED, detail="no kubectl in PATH")
    left_s = until_s - time.monotonic()
    if left_s <= 0:
        return Absence(reason=AbsenceReason.SKIPPED, detail=f"no time left for {spelled}")
    command = Command(
        words=(program, *arguments, f"--request-timeout={left_s:.1f}s"),
        spelled=spelled,
        environment={**environment, "LC_ALL": "C"},
        whom="the API",
        most_bytes=MOST_OUTPUT_BYTES,
    )
    return run(command, until_s, lambda errors, _: _explain(spelled, errors.decode(errors="replace")))


def _explain(spelled: str, errors: str) -> Absence:
    """The reason by kubectl's last words; what the client logs before them is noise."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    told = [line for line in lines if not _NOISE.match(line)] or lines or ["it failed without a word"]
    last = "".join(sign for sign in told[-1] if sign.isprintable())
    lowered = last.lower().replace("?timeout=", " ")  # an address, and no complaint
    reason = next((reason for reason, words in _REASONS if any(word in lowered for word in words)), AbsenceReason.UNREADABLE)
    return Absence(reason=reason, detail=f"{spelled}: {last[:ERROR_LENGTH]}")
