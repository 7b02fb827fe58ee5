"""Runs one of Slurm's commands and gives what it says, or why it says nothing. Never raises, never hangs.

Cost: 20 ms and one request to the controller (`slurmctld`); `sacct` asks the database daemon instead. Each runs as
`own_command.py` says, killed at its deadline: these commands only ask. They wait for a busy controller up to MessageTimeout
(10 s) and then try again, so the deadline is what ends them. Nothing stays behind.
"""

import os
import shutil
import time
from collections.abc import Mapping

from pardbg.collectors.jobs.own_command import ERROR_LENGTH, MOST_ERROR_BYTES, Answer, Command, run
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason

MOST_OUTPUT_BYTES = 64 * 1024**2
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
    asked = Command(
        words=(program, *command[1:]),
        spelled=spelled,
        environment={**{name: environment[name] for name in _KEPT if name in environment}, **_SET},
        whom="the controller",
        most_bytes=MOST_OUTPUT_BYTES,
    )
    return run(asked, until_s, lambda errors, output: _explain(spelled, errors or output[:MOST_ERROR_BYTES]))


def spell(command: tuple[str, ...]) -> str:
    """The command for people: without the options that only make its answer readable for us."""
    return " ".join(part for part in command if not part.startswith(_OUR_OPTIONS))


def _explain(spelled: str, written: bytes) -> Absence:
    """The reason by the words of the whole error; the detail is its first line."""
    errors = written.decode(errors="replace")
    lowered = errors.lower()
    reason = next((reason for reason, words in _REASONS if any(word in lowered for word in words)), AbsenceReason.UNREADABLE)
    first = next((line.strip() for line in errors.splitlines() if line.strip()), "it failed without a word")
    return Absence(reason=reason, detail=f"{spelled}: {first[:ERROR_LENGTH]}")
