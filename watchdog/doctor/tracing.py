"""What could be done to a process of our own: its memory read, itself held. And who refuses. Pure."""

from collections.abc import Iterator

from pardbg.collectors.node.answers import Trial
from pardbg.collectors.node.surroundings import Surroundings
from pardbg.watchdog.doctor.check import Check, State
from pardbg.watchdog.doctor.refusals import explain_refusal, is_filtered, is_refused_by_yama

_NO_STACKS = "no Python stacks: the verdict has only process states and a recorder to go by"
_NO_NATIVE = "no native stacks, which are taken of two ranks at most where Python's do not explain"
_NO_GROUPS = "sizes and names of process groups that only the memory of a rank tells"


def check_memory(surroundings: Surroundings) -> Iterator[Check]:
    """Both ways to another process's memory."""
    memory = surroundings.trial.memory
    if memory is None:
        yield untried("memory")
    elif not memory.file_error:
        refused = f"process_vm_readv is refused ({memory.call_error}), /proc/PID/mem serves instead"
        yield Check(name="memory", state=State.OK, seen=refused if memory.call_error else "a process of our own could be read")
    else:
        reason = explain_refusal(surroundings)
        yield Check(
            name="memory",
            state=State.BLOCKS if memory.call_error else State.LIMITS,
            seen=f"/proc/PID/mem of a process of our own is refused ({memory.file_error})"
            + (f", and process_vm_readv ({memory.call_error})" if memory.call_error else ""),
            cost=_NO_STACKS if memory.call_error else _NO_GROUPS,
            remedy=f"{reason.who} refuses: {reason.remedy}",
            command=reason.command,
        )


def check_ptrace(surroundings: Surroundings) -> Iterator[Check]:
    """Holding a process for an instant."""
    ptrace = surroundings.trial.ptrace
    if ptrace is None:
        yield untried("ptrace")
    elif not ptrace.error:
        yield Check(name="ptrace", state=State.OK, seen="a process of our own could be held and let go")
    else:
        reason = explain_refusal(surroundings)
        remedy = "see seccomp" if _refused_by_filter(surroundings) else f"{reason.who} refuses: {reason.remedy}"
        yield Check(
            name="ptrace",
            state=State.LIMITS,
            seen=f"ptrace on a process of our own is refused ({ptrace.error})",
            cost=_NO_NATIVE,
            remedy=remedy,
            command=reason.command,
        )


def check_seccomp(surroundings: Surroundings) -> Iterator[Check]:
    """The filter that containers put around their processes."""
    if surroundings.own.seccomp is None:
        yield Check(name="seccomp", state=State.UNKNOWN, seen="the kernel does not say whether a filter is active")
    elif not is_filtered(surroundings):
        yield Check(name="seccomp", state=State.OK, seen="no filter")
    elif surroundings.trial.problem:
        yield Check(name="seccomp", state=State.UNKNOWN, seen="a filter is active; what it refuses, see trial")
    elif refused := _refused_by_filter(surroundings):
        yield Check(
            name="seccomp",
            state=State.LIMITS,
            seen=f"a filter is active and refuses {' and '.join(refused)}",
            cost="what these calls give; see memory, py-spy and ptrace",
            remedy=explain_refusal(surroundings).remedy,
        )
    else:
        yield Check(name="seccomp", state=State.OK, seen="a filter is active, and refuses nothing that pardbg needs")


def check_trial(surroundings: Surroundings) -> Iterator[Check]:
    """Whether everything could be tried. Only a trial that was cut off gives a line."""
    trial = surroundings.trial
    if trial.is_killed:
        yield Check(
            name="trial",
            state=State.BLOCKS,
            seen=f"{trial.problem}, at {_next_step(trial)}",
            cost="a scan does the same to ranks, so it would be killed, too",
            remedy=explain_refusal(surroundings).remedy,
        )
    elif trial.problem:
        again = "run the command again when the machine is less busy"
        yield Check(name="trial", state=State.UNKNOWN, seen=trial.problem, remedy=again)


def untried(name: str) -> Check:
    """There was no answer, so nothing can be said."""
    return Check(name=name, state=State.UNKNOWN, seen="not tried, see trial")


def _next_step(trial: Trial) -> str:
    """What was under way when the trial ended; the order is that of `collectors/node/trying.py`."""
    if trial.memory is None:
        return "process_vm_readv"
    return "py-spy" if trial.py_spy is None else "ptrace" if trial.ptrace is None else "the kernel log"


def _refused_by_filter(surroundings: Surroundings) -> list[str]:
    """The calls that a filter refuses, as far as nobody else does."""
    if not is_filtered(surroundings) or is_refused_by_yama(surroundings):
        return []
    memory, ptrace = surroundings.trial.memory, surroundings.trial.ptrace
    errors = {"process_vm_readv": memory.call_error if memory else "", "ptrace": ptrace.error if ptrace else ""}
    return [call for call, error in errors.items() if error]
