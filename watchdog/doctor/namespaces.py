"""Containers: which processes have numbers here, and whose paths mean the same as ours. Pure."""

from collections.abc import Iterator

from pardbg.collectors.node.surroundings import JobHere, Surroundings
from pardbg.watchdog.doctor.check import Check, State
from pardbg.watchdog.outputs.phrases import name_ranks

_INITIAL_PID_NAMESPACE = "pid:[4026531836]"  # a constant of the kernel
_NOT_READ = "probes, recorders and source files of such ranks are not read"
_ENTER = "run pardbg in the job's container (docker exec, kubectl exec)"


def check_pid_namespace(surroundings: Surroundings) -> Iterator[Check]:
    """Whether all processes of the machine can have a number here."""
    own, jobs = surroundings.own.namespaces.pid, surroundings.processes.jobs
    if not own:
        yield Check(name="pid-namespace", state=State.UNKNOWN, seen="the kernel does not name our pid namespace")
    elif own == _INITIAL_PID_NAMESPACE:
        yield Check(name="pid-namespace", state=State.OK, seen="the machine's own: all of its processes show")
    elif jobs:
        seen = "a container's own; the jobs listed here run in it, those outside do not show"
        yield Check(name="pid-namespace", state=State.OK, seen=seen)
    else:
        yield Check(
            name="pid-namespace",
            state=State.LIMITS,
            seen="a container's own, and no job runs in it",
            cost="jobs outside this container are not found",
            remedy="run pardbg on the host, in the job's container, or with the host's processes (docker: --pid=host; "
            "Kubernetes: hostPID: true)",
        )


def check_mount_namespace(surroundings: Surroundings) -> Iterator[Check]:
    """Whether ranks see the same files under the same names."""
    jobs = surroundings.processes.jobs
    for job in jobs:
        yield from _check_strangers(job)
    if jobs:
        if all(rank.is_at_home for job in jobs for rank in job.world.ranks):
            yield Check(name="mount-namespace", state=State.OK, seen="all ranks here share our files")
        return
    own, init = surroundings.own.namespaces.mount, surroundings.own.init.mount
    if own and init and own != init:
        seen = f"ours is {own}, that of the machine {init}: whether files of ranks outside can be read shows when one runs"
        yield Check(name="mount-namespace", state=State.UNKNOWN, seen=seen)
    else:
        seen = "the machine's own" if own and init else "no rank here to compare ours with"
        yield Check(name="mount-namespace", state=State.OK, seen=seen)


def _check_strangers(job: JobHere) -> Iterator[Check]:
    """Ranks in another mount namespace: their files are read below their root, where the kernel lets us."""
    why = {look.pid: look.why_no_files for look in job.looks}
    strangers = [rank for rank in job.world.ranks if not rank.is_at_home]
    closed = [rank for rank in strangers if why.get(rank.pid) != ""]
    seen = f"{job.name}: {name_ranks([rank.rank for rank in closed or strangers])} in another mount namespace than pardbg"
    if closed:
        told = "".join(f"; {reason}" for reason in dict.fromkeys(why.get(rank.pid) for rank in closed) if reason)
        yield Check(name="mount-namespace", state=State.LIMITS, seen=seen + told, cost=_NOT_READ, remedy=_ENTER)
    elif strangers:
        yield Check(name="mount-namespace", state=State.OK, seen=f"{seen}: their files are read below their roots")
