"""What the kernel shows: its log, deaths for lack of memory, what a process waits for. Pure."""

from collections.abc import Iterator

from pardbg.collectors.node.surroundings import Capability, Surroundings
from pardbg.watchdog.doctor.check import Check, State
from pardbg.watchdog.doctor.refusals import explain_refusal, is_refused_by_yama
from pardbg.watchdog.doctor.tracing import untried

_COSTS = {
    "wchan": "the kernel function that a rank sleeps in",
    "syscall": "the call and the file that a rank waits in",
    "sched": "since when a rank has not run",
}
_LOG_AS_ROOT = "sudo dmesg"


def check_kernel_log(surroundings: Surroundings) -> Iterator[Check]:
    """Whether its log can be read."""
    log = surroundings.trial.kernel_log
    if log is None:
        yield untried("kernel-log")
    elif not log.error:
        yield Check(name="kernel-log", state=State.OK, seen=f"can be read ({log.way})")
    else:
        own, restricted = surroundings.own, bool(surroundings.settings.dmesg_restrict)
        lacks = restricted and not (own.has(Capability.SYSLOG) or own.has(Capability.SYS_ADMIN))
        why = ": kernel.dmesg_restrict is 1 and CAP_SYSLOG is missing" if lacks else ""
        yield Check(
            name="kernel-log",
            state=State.LIMITS,
            seen=f"cannot be read ({log.way}: {log.error}){why}",
            cost="what only this log tells: GPU errors (Xid), and which process was killed for lack of memory",
            remedy="read it as root and look for Xid and oom-kill"
            if own.uid
            else "look at it on the host, or give the container /dev/kmsg and the capability SYSLOG",
            command=_LOG_AS_ROOT if own.uid else None,
        )


def check_oom_counter(surroundings: Surroundings) -> Iterator[Check]:
    """Whether the control group says how many of its processes were killed."""
    counter = surroundings.trial.oom_counter
    if counter is None:
        yield untried("oom-counter")
    elif counter.path and not counter.error:
        yield Check(
            name="oom-counter", state=State.OK, seen=f"{counter.path.rpartition('/')[2]} of our control group can be read"
        )
    elif counter.error in {"", "ENOENT"}:
        seen = "our own control group has none: that of a job may have one"
        yield Check(name="oom-counter", state=State.UNKNOWN, seen=seen)
    else:
        yield Check(
            name="oom-counter",
            state=State.LIMITS,
            seen=f"{counter.path} cannot be read ({counter.error})",
            cost="that the kernel killed a rank's process for lack of memory",
            remedy="let pardbg read /sys/fs/cgroup",
        )


def check_process_files(surroundings: Surroundings) -> Iterator[Check]:
    """``wchan``, ``syscall`` and ``sched``."""
    files = surroundings.trial.process_files
    if files is None:
        yield untried("process-files")
    elif not files.unusable:
        yield Check(name="process-files", state=State.OK, seen="wchan, syscall and sched of a process of our own can be read")
    else:
        remedy = "none while this kernel runs, if it was built without them"
        if "syscall" in files.unusable and is_refused_by_yama(surroundings):
            remedy = explain_refusal(surroundings).remedy
        yield Check(
            name="process-files",
            state=State.LIMITS,
            seen=f"{' and '.join(files.unusable)} of a process of our own cannot be read",
            cost="; ".join(_COSTS[name] for name in files.unusable if name in _COSTS),
            remedy=remedy,
        )
