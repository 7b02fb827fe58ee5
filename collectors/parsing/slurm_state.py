"""The state of a Slurm job, as every command spells it: ``RUNNING``, ``CANCELLED by 1000``, ``COMPLETED+``, a list."""

import re
from collections.abc import Sequence

from pardbg.collectors.parsing.slurm_record import SlurmState

_STATES = {
    "PENDING": SlurmState.PENDING,
    "CONFIGURING": SlurmState.PENDING,
    "REQUEUED": SlurmState.PENDING,
    "REQUEUE_FED": SlurmState.PENDING,
    "REQUEUE_HOLD": SlurmState.PENDING,
    "RESV_DEL_HOLD": SlurmState.PENDING,
    "SPECIAL_EXIT": SlurmState.PENDING,
    "EXPEDITING": SlurmState.PENDING,
    "POWER_UP_NODE": SlurmState.PENDING,
    "RUNNING": SlurmState.RUNNING,
    "RESIZING": SlurmState.RUNNING,
    "SIGNALING": SlurmState.RUNNING,
    "LAUNCH_FAILED": SlurmState.FAILED,
    "SUSPENDED": SlurmState.SUSPENDED,
    "STOPPED": SlurmState.SUSPENDED,
    "COMPLETING": SlurmState.COMPLETING,
    "STAGE_OUT": SlurmState.COMPLETING,
    "COMPLETED": SlurmState.COMPLETED,
    "FAILED": SlurmState.FAILED,
    "RECONFIG_FAIL": SlurmState.FAILED,
    "CANCELLED": SlurmState.CANCELLED,
    "REVOKED": SlurmState.CANCELLED,
    "TIMEOUT": SlurmState.TIMEOUT,
    "NODE_FAIL": SlurmState.NODE_FAIL,
    "PREEMPTED": SlurmState.PREEMPTED,
    "OUT_OF_MEMORY": SlurmState.OUT_OF_MEMORY,
    "BOOT_FAIL": SlurmState.BOOT_FAIL,
    "DEADLINE": SlurmState.DEADLINE,
}
_SUSPENDING = frozenset({"SUSPENDED", "STOPPED"})
_WORD = re.compile(r"[A-Z_]+")
_CANCELLED_BY = re.compile(r"CANCELLED by (\d+)", re.ASCII)


def read_state(words: str | Sequence[str]) -> SlurmState:
    """The state that counts, of a text or a list of flags.

    Why a job ended says more than that it is being cleaned up: ``["TIMEOUT", "COMPLETING"]`` is a timeout. One that is
    cleaned up after a run without a reason for its end is completing.
    """
    text = words if isinstance(words, str) else ",".join(words)
    names = [name for name in _WORD.findall(text) if name in _STATES]
    found = [_STATES[name] for name in names]
    ended = [state for state in found if state.is_over and state is not SlurmState.COMPLETED]
    if ended:
        return ended[0]
    if SlurmState.COMPLETING in found:
        return SlurmState.COMPLETING
    if _SUSPENDING & set(names):
        return SlurmState.SUSPENDED
    if SlurmState.PENDING in found:  # RUNNING with CONFIGURING or POWER_UP_NODE: its nodes are still booting
        return SlurmState.PENDING
    return found[0] if found else SlurmState.UNKNOWN


def read_canceller(text: str) -> int | None:
    """The number of the user who cancelled the job, where the state says so (`sacct` does)."""
    match = _CANCELLED_BY.search(text)
    return int(match[1]) if match else None
