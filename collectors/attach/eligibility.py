"""Whether a process may be attached to at all, from what `/proc` says of it and of each of its threads. Pure.

What is refused here is refused for good reasons of the process; which of its threads may be borrowed is in `parking.py`.
"""

from pardbg.watchdog.model.process import STOPPED_STATES

SHADOW_STACK = "shstk"
_REFUSED_STATES = {"D": "it is in an uninterruptible call", "Z": "it has ended", "X": "it has ended"}
_STRICT = "1"


def why_not_process(status: str, machine: str) -> str:
    """Why nothing may be done to a process, in words; empty if something may.

    Args:
        status: text of ``/proc/PID/status``.
        machine: as ``uname -m`` prints it.
    """
    if machine != "x86_64":
        return f"attaching has been tried on x86_64 only, and this is {machine}"
    lines = _fields(status)
    state = lines.get("State", "?")[:1]
    reasons = {
        _REFUSED_STATES.get(state, ""): state in _REFUSED_STATES,
        "its memory is being dumped": lines.get("CoreDumping", "0") != "0",
    }
    return next((reason for reason, holds in reasons.items() if holds), "") or why_not_thread(status)


def why_not_thread(status: str) -> str:
    """Why nothing may be done to the whole process, because of one of its threads; empty if something may.

    A thread that somebody holds may hold what the others need to go on, the lock of the memory allocator for one.

    Args:
        status: text of ``/proc/PID/task/TID/status``.
    """
    lines = _fields(status)
    state = lines.get("State", "?")[:1]
    tracer = lines.get("TracerPid", "0")
    reasons = {
        f"process {tracer} traces it": tracer != "0",
        "it is stopped": state in STOPPED_STATES,
        "its system calls are filtered in strict mode": lines.get("Seccomp", "0") == _STRICT,
        "its return addresses are guarded by a shadow stack": SHADOW_STACK in lines.get("x86_Thread_features", "").split(),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _fields(status: str) -> dict[str, str]:
    return {name: value.strip() for name, _, value in (line.partition(":") for line in status.splitlines())}
