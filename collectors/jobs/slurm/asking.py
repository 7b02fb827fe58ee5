"""Runs one of Slurm's commands and gives what it says, or why it says nothing. Never raises, never hangs.

Cost: 20 ms and one request to the controller (`slurmctld`); `sacct` asks the database daemon instead. Each is a process of our
own in a session of its own, without a shell, killed at its deadline: these commands only ask. They wait for a busy controller
up to MessageTimeout (10 s) and then try again, so the deadline is what ends them. Nothing stays behind.
"""

import contextlib
import os
import selectors
import shutil
import subprocess
import time
from collections.abc import Mapping

from pardbg.collectors.own_child import end_child
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason

MOST_OUTPUT_BYTES = 64 * 1024**2
_MOST_ERROR_BYTES = 64 * 1024
_ERROR_LENGTH = 200
_PART_BYTES = 256 * 1024
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LD_LIBRARY_PATH", "SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_JWT")
"""All that Slurm's commands get of our environment: other variables of Slurm's change what they print."""

_OUR_OPTIONS = ("--format=", "--delimiter=", "--noheader", "--parsable2", "--oneliner")
_SET = {"LC_ALL": "C", "SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
_REASONS = (
    (AbsenceReason.GONE, ("invalid job id",)),
    (AbsenceReason.EMPTY, ("job step", "no steps for job")),  # "Job step 3. not found": the job runs none
    (AbsenceReason.SWITCHED_OFF, ("accounting storage is disabled", "slurm accounting storage")),
    (AbsenceReason.DENIED, ("permission denied", "access denied", "not permitted", "authentication")),
    (AbsenceReason.UNREACHABLE, ("unable to contact", "connect", "timed out", "configuration source", "fetch_config", "munge")),
    (AbsenceReason.UNSUPPORTED, ("unrecognized option", "invalid option", "invalid field", "unknown option")),
)


class Answer(Noun, frozen=True, kw_only=True):
    """What a command wrote to standard output; ``command`` is how a person would ask again."""

    command: str
    output: bytes

    @property
    def text(self) -> str:
        """Decoded; what is no UTF-8 becomes a question mark."""
        return self.output.decode(errors="replace")


def ask(command: tuple[str, ...], until_s: float, environment: Mapping[str, str] = os.environ) -> Answer | Absence:
    """Runs a command to its end.

    Args:
        command: the program, looked for in PATH, and its arguments.
        until_s: deadline, on the monotonic clock.
        environment: ours; only `_KEPT` is passed on.
    """
    spelled = spell(command)
    program = shutil.which(command[0], path=environment.get("PATH"))
    if program is None:
        return Absence(
            reason=AbsenceReason.NOT_INSTALLED, detail=f"no {command[0]} in PATH: ask on a login node of the cluster"
        )
    if until_s <= time.monotonic():
        return Absence(reason=AbsenceReason.SKIPPED, detail=f"no time left for {spelled}")
    passed_on = {**{name: environment[name] for name in _KEPT if name in environment}, **_SET}
    try:
        child = subprocess.Popen(  # noqa: S603 - Slurm's own command, no shell, arguments made of digits and signs
            [program, *command[1:]],
            env=passed_on,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # Ctrl-C reaches us, who end it
        )
    except OSError as error:
        return Absence(reason=AbsenceReason.UNREADABLE, detail=f"{spelled} cannot be started: {error.strerror}")
    try:
        return _hear(child, spelled, until_s)
    finally:
        end_child(child)
        if child.stderr is not None:
            with contextlib.suppress(OSError):
                child.stderr.close()


def spell(command: tuple[str, ...]) -> str:
    """The command for people: without the options that only make its answer readable for us."""
    return " ".join(part for part in command if not part.startswith(_OUR_OPTIONS))


def _hear(child: "subprocess.Popen[bytes]", spelled: str, until_s: float) -> Answer | Absence:
    output, errors = bytearray(), bytearray()
    if not _collect(child, output, errors, until_s):
        return Absence(
            reason=AbsenceReason.TIMED_OUT, detail=f"{spelled} did not answer in time: the controller may be busy or gone"
        )
    if len(output) > MOST_OUTPUT_BYTES:
        return Absence(reason=AbsenceReason.UNREADABLE, detail=f"{spelled} wrote more than {MOST_OUTPUT_BYTES // 1024**2} MiB")
    with contextlib.suppress(subprocess.TimeoutExpired):
        if child.wait(timeout=max(0.0, until_s - time.monotonic())) == 0:
            return Answer(command=spelled, output=bytes(output))
        return _explain(spelled, (errors or output[:_MOST_ERROR_BYTES]).decode(errors="replace"))
    return Absence(reason=AbsenceReason.TIMED_OUT, detail=f"{spelled} did not end in time")


def _collect(child: "subprocess.Popen[bytes]", output: bytearray, errors: bytearray, until_s: float) -> bool:
    """Reads both streams until they end or the output is too long; False if time is up first."""
    with selectors.DefaultSelector() as selector:
        for stream, buffer in ((child.stdout, output), (child.stderr, errors)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, buffer)
        while selector.get_map() and len(output) <= MOST_OUTPUT_BYTES:
            ready = selector.select(max(0.0, until_s - time.monotonic()))
            if not ready:
                return False
            for key, _ in ready:
                part = os.read(key.fd, _PART_BYTES)
                if not part:
                    selector.unregister(key.fileobj)
                elif key.data is output or len(errors) < _MOST_ERROR_BYTES:
                    key.data.extend(part)
    return True


def _explain(spelled: str, errors: str) -> Absence:
    """The reason by the words of the whole error; the detail is its first line."""
    lowered = errors.lower()
    reason = next((reason for reason, words in _REASONS if any(word in lowered for word in words)), AbsenceReason.UNREADABLE)
    first = next((line.strip() for line in errors.splitlines() if line.strip()), "it failed without a word")
    return Absence(reason=reason, detail=f"{spelled}: {first[:_ERROR_LENGTH]}")
