"""Who we are, whom the kernel therefore shows us, and what Yama adds to that. Pure."""

import re
from collections.abc import Iterator

from pardbg.collectors.node.surroundings import Capability, Surroundings
from pardbg.watchdog.doctor.check import Check, State
from pardbg.watchdog.doctor.refusals import NO_ATTACHING, is_refused_by_yama, more_rights
from pardbg.watchdog.outputs.phrases import list_names

_INITIAL_USER_NAMESPACE = "user:[4026531837]"  # a constant of the kernel
_HIDEPID = re.compile(r"hidepid=(\w+)")
_HIDEPID_GROUP = re.compile(r"gid=(\d+)")
_HARMLESS_HIDEPID = frozenset({"0", "off"})
_ONLY_BY_PTRACE = frozenset({"4", "ptraceable"})
_MOST_UIDS = 5
_SCOPES = {
    1: "a process may look into its own children only",
    2: "only who has CAP_SYS_PTRACE may look into processes",
    NO_ATTACHING: "nobody may look into processes, not even root",
}
_NO_STACKS = "no stacks, and not the calls that ranks wait in: what a rank does stays unknown"


def check_user(surroundings: Surroundings) -> Iterator[Check]:
    """The user and the capability that stands for all users. Whether others are there at all, `check_other_users` says."""
    own = surroundings.own
    inside = own.namespaces.user not in {"", _INITIAL_USER_NAMESPACE}
    where = " of this user namespace" if inside else ""
    if own.has(Capability.SYS_PTRACE):
        seen = f"uid {own.uid} with CAP_SYS_PTRACE: jobs of all users{where} can be read"
    else:
        seen = f"uid {own.uid} without CAP_SYS_PTRACE: this user's jobs only"
    yield Check(name="user", state=State.OK, seen=seen)


def check_other_users(surroundings: Surroundings) -> Iterator[Check]:
    """Processes that are hidden from us, or that may not be looked into."""
    if hidden := _hidden_by(surroundings):
        yield Check(
            name="hidden-processes",
            state=State.LIMITS,
            seen=f"/proc is mounted with {hidden}: processes of other users do not show",
            cost="jobs of other users are not found, nor ranks of a job that run as another user",
            remedy="mount /proc without it, run pardbg as root, or join the group of its option gid=",
            command="sudo mount -o remount,hidepid=0 /proc",
        )
    denied = surroundings.processes.denied
    if not denied.count:
        yield Check(name="other-users", state=State.OK, seen="no Python process here refuses to be looked into")
        return
    uids = list_names([str(uid) for uid in denied.uids], _MOST_UIDS)
    plural = "es" if denied.count > 1 else ""
    seen = f"{denied.count} Python process{plural} of uid {uids} may not be looked into"
    cost = "whether they are ranks, and of which job, is not seen; nor are their stacks"
    if surroundings.own.has(Capability.SYS_PTRACE):
        remedy = "CAP_SYS_PTRACE is here and does not help: a security module or a sandbox refuses; run pardbg outside of it"
        yield Check(name="other-users", state=State.LIMITS, seen=seen, cost=cost, remedy=remedy)
    else:
        more = more_rights(surroundings)
        yield Check(name="other-users", state=State.LIMITS, seen=seen, cost=cost, remedy=more.remedy, command=more.command)


def check_yama(surroundings: Surroundings) -> Iterator[Check]:
    """``kernel.yama.ptrace_scope``."""
    scope = surroundings.settings.ptrace_scope
    if scope is None:
        yield Check(name="yama", state=State.OK, seen="no Yama: processes of the same user may be looked into")
    elif scope == 0:
        yield Check(name="yama", state=State.OK, seen="ptrace_scope 0: processes of the same user may be looked into")
    elif not is_refused_by_yama(surroundings):
        yield Check(name="yama", state=State.OK, seen=f"ptrace_scope {scope}, overruled by CAP_SYS_PTRACE")
    else:
        is_final = scope == NO_ATTACHING
        yield Check(
            name="yama",
            state=State.BLOCKS,
            seen=f"kernel.yama.ptrace_scope is {scope}: {_SCOPES.get(scope, 'more than this pardbg knows')}",
            cost=_NO_STACKS,
            remedy="set it to 0 in /etc/sysctl.d and boot again: 3 cannot be lowered while the system runs"
            if is_final
            else f"lower it, or {more_rights(surroundings).remedy}",
            command=None if is_final else "sudo sysctl kernel.yama.ptrace_scope=0",
        )


def _hidden_by(surroundings: Surroundings) -> str:
    """The mount option that hides other users' processes from us; empty if none does."""
    options = " ".join(surroundings.settings.proc_options)
    found = _HIDEPID.search(options)
    if found is None or found[1] in _HARMLESS_HIDEPID or surroundings.own.has(Capability.SYS_PTRACE):
        return ""
    group = _HIDEPID_GROUP.search(options)
    is_member = int(group[1]) in surroundings.own.groups if group else False
    return "" if is_member and found[1] not in _ONLY_BY_PTRACE else found[0]
