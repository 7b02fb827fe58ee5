"""Why the kernel refuses to let a process be looked into, and what helps: shared by the checks that meet a refusal. Pure."""

from pardbg.collectors.node.surroundings import Capability, Surroundings
from pardbg.watchdog.model.base import Noun

AS_ROOT = 'sudo "$(command -v pardbg)" doctor'
IN_CONTAINER = "give the container the capability SYS_PTRACE (docker, podman: --cap-add SYS_PTRACE)"
_PROFILE = (
    "start the container with a seccomp profile that allows ptrace and process_vm_readv, or none (docker, podman: "
    "--security-opt seccomp=unconfined; Kubernetes: seccompProfile: {type: Unconfined})"
)
_FILTER = 2
NO_ATTACHING = 3


class Reason(Noun, frozen=True, kw_only=True):
    """Who refuses, and what to do about it."""

    who: str
    remedy: str
    command: str | None = None


def is_refused_by_yama(surroundings: Surroundings) -> bool:
    """Whether Yama lets us look into no process but our own children."""
    scope = surroundings.settings.ptrace_scope
    return scope == NO_ATTACHING or (bool(scope) and not surroundings.own.has(Capability.SYS_PTRACE))


def is_filtered(surroundings: Surroundings) -> bool:
    """Whether a seccomp filter stands between us and the kernel."""
    return surroundings.own.seccomp == _FILTER


def explain_refusal(surroundings: Surroundings) -> Reason:
    """The most likely reason for a refusal on a process of our own."""
    if is_refused_by_yama(surroundings):
        return Reason(who="Yama", remedy="see yama")
    if is_filtered(surroundings):
        return Reason(who="a seccomp filter", remedy=_PROFILE)
    return Reason(
        who="a security module or a sandbox",
        remedy="allow it in the profile of SELinux, AppArmor or Landlock that pardbg runs under, or run it outside",
    )


def more_rights(surroundings: Surroundings) -> Reason:
    """How to get the privilege that is missing."""
    if surroundings.own.uid == 0:
        return Reason(who="the container", remedy=IN_CONTAINER)
    return Reason(who="the system", remedy="run pardbg as root", command=AS_ROOT)
