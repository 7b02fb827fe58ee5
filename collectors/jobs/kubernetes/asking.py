"""Runs the user's own kubectl, which asks the API, and gives what it says, or why it says nothing. Never raises, never hangs.

Cost: 50 to 100 ms of processor time here, and one request (two small ones more where kubectl does not yet know the cluster,
and its cache in ``~/.kube/cache`` is written). kubectl is a process of our own in a session of its own, without a shell and
without a terminal; it and what it started (a plugin for credentials) are killed at its deadline. Nothing stays behind.
"""

import contextlib
import os
import re
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping

from pardbg.collectors.own_child import end_child
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason

PROGRAM = "kubectl"
MOST_OUTPUT_BYTES = 256 * 1024**2  # some 10 KB a pod
_MOST_ERROR_BYTES = 64 * 1024
_ERROR_LENGTH = 200
_PART_BYTES = 256 * 1024
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


class Answer(Noun, frozen=True, kw_only=True):
    """What kubectl wrote to standard output; ``command`` is how a person would ask again."""

    command: str
    output: bytes


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
    try:
        child = subprocess.Popen(  # noqa: S603 - the user's kubectl, no shell, arguments that have been looked at
            [program, *arguments, f"--request-timeout={left_s:.1f}s"],
            env={**environment, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # Ctrl-C reaches us, who end it; and nobody is asked for a password
        )
    except OSError as error:
        return Absence(reason=AbsenceReason.UNREADABLE, detail=f"{spelled} cannot be started: {error.strerror}")
    try:
        return _hear(child, spelled, until_s)
    finally:
        _end(child)


def _end(child: "subprocess.Popen[bytes]") -> None:
    """With its plugins: they are of its session, whose number is its own for as long as it has not been waited for."""
    if child.poll() is None:
        with contextlib.suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
    end_child(child)
    if child.stderr is not None:
        with contextlib.suppress(OSError):
            child.stderr.close()


def _hear(child: "subprocess.Popen[bytes]", spelled: str, until_s: float) -> Answer | Absence:
    output, errors = bytearray(), bytearray()
    late = Absence(reason=AbsenceReason.TIMED_OUT, detail=f"{spelled} did not answer in time: the API may be busy or gone")
    if not _collect(child, output, errors, until_s):
        return late
    if len(output) > MOST_OUTPUT_BYTES:
        return Absence(reason=AbsenceReason.UNREADABLE, detail=f"{spelled} wrote more than {MOST_OUTPUT_BYTES // 1024**2} MiB")
    try:
        code = child.wait(timeout=max(0.0, until_s - time.monotonic()))
    except subprocess.TimeoutExpired:
        return late
    if code == 0:
        return Answer(command=spelled, output=bytes(output))
    return _explain(spelled, errors.decode(errors="replace"))


def _collect(child: "subprocess.Popen[bytes]", output: bytearray, errors: bytearray, until_s: float) -> bool:
    """Reads both streams until they end or the output is too long; False if time is up first."""
    with selectors.DefaultSelector() as selector:
        for stream, buffer in ((child.stdout, output), (child.stderr, errors)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, buffer)
        while selector.get_map() and len(output) <= MOST_OUTPUT_BYTES:
            left_s = until_s - time.monotonic()
            ready = selector.select(max(0.0, left_s))
            if left_s <= 0 or not ready:
                return False
            for key, _ in ready:
                part = os.read(key.fd, _PART_BYTES)
                if not part:
                    selector.unregister(key.fileobj)
                elif key.data is output or len(errors) < _MOST_ERROR_BYTES:
                    key.data.extend(part)
    return True


def _explain(spelled: str, errors: str) -> Absence:
    """The reason by kubectl's last words; what the client logs before them is noise."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    told = [line for line in lines if not _NOISE.match(line)] or lines or ["it failed without a word"]
    last = "".join(sign for sign in told[-1] if sign.isprintable())
    lowered = last.lower().replace("?timeout=", " ")  # an address, and no complaint
    reason = next((reason for reason, words in _REASONS if any(word in lowered for word in words)), AbsenceReason.UNREADABLE)
    return Absence(reason=reason, detail=f"{spelled}: {last[:_ERROR_LENGTH]}")
