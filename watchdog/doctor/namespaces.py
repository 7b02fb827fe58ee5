"""Containers: which processes have numbers here, and whose paths mean the same as ours. Pure."""

from collections.abc import Iterator

from pardbg.collectors.node.surroundings import Surroundings
from pardbg.watchdog.doctor.check import Check, State
from pardbg.watchdog.outputs.phrases import name_ranks

_INITIAL_PID_NAMESPACE = "pid:[4026531836]"  # a constant of the kernel
_NOT_READ = "sources, logs and dump files of such ranks are not read"
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
        strangers = [rank.rank for rank in job.world.ranks if not rank.is_at_home]
        if strangers:
            yield Check(
                name="mount-namespace",
                state=State.LIMITS,
                seen=f"{job.name}: {name_ranks(strangers)} in another mount namespace than pardbg",
                cost=_NOT_READ,
                remedy=_ENTER,
            )
    if jobs:
        if all(rank.is_at_home for job in jobs for rank in job.world.ranks):
            yield Check(name="mount-namespace", state=State.OK, seen="all ranks here share our files")
        return
    own, init = surroundings.own.namespaces.mount, surroundings.own.init.mount
    if own and init and own != init:
        yield Check(
            name="mount-namespace",
            state=State.LIMITS,
            seen=f"ours is {own}, that of the machine {init}",
            cost="of jobs outside this container, " + _NOT_READ.replace("such ranks", "their ranks"),
            remedy=_ENTER,
        )
    else:
        seen = "the machine's own" if own and init else "no rank here to compare ours with"
        yield Check(name="mount-namespace", state=State.OK, seen=seen)
