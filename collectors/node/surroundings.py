"""The nouns of what this machine lets pardbg see. In all of them None is "could not be told"."""

from pardbg.collectors.node.answers import RankLook, Trial
from pardbg.collectors.node.devices import DevicesTrial
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.world import World


class Capability:
    """Numbers of capabilities, which are bits of a mask."""

    SYS_PTRACE = 19
    SYS_ADMIN = 21
    SYSLOG = 34


class Namespaces(Noun, frozen=True, kw_only=True):
    """Names as the kernel gives them, e.g. ``pid:[4026531836]``; empty if they may not be read."""

    pid: str = ""
    mount: str = ""
    user: str = ""


class OwnProcess(Noun, frozen=True, kw_only=True):
    """Ourselves.

    Attributes:
        uid: the effective one.
        groups: all of them.
        capabilities: the effective ones, a bit each.
        seccomp: 0 none, 1 strict, 2 a filter.
        namespaces: our own.
        init: those of process 1.
    """

    uid: int
    groups: tuple[int, ...] = ()
    capabilities: int = 0
    seccomp: int | None = None
    namespaces: Namespaces = Namespaces()
    init: Namespaces = Namespaces()

    def has(self, capability: int) -> bool:
        """Whether we have a capability."""
        return bool(self.capabilities >> capability & 1)


class KernelSettings(Noun, frozen=True, kw_only=True):
    """What the administrator has set.

    Attributes:
        ptrace_scope: of Yama, None where there is no Yama.
        dmesg_restrict: whether the kernel log asks for a privilege.
        proc_options: mount options of ``/proc``, e.g. ``hidepid=2``.
    """

    ptrace_scope: int | None = None
    dmesg_restrict: int | None = None
    proc_options: tuple[str, ...] = ()


class JobHere(Noun, frozen=True, kw_only=True):
    """A job that runs here. ``name`` is the option of ``pardbg scan`` that means it; ``looks`` has the ranks that answered."""

    name: str
    world: World
    looks: tuple[RankLook, ...] = ()


class Denied(Noun, frozen=True, kw_only=True):
    """Python processes that may not be looked into."""

    count: int = 0
    uids: tuple[int, ...] = ()


class Processes(Noun, frozen=True, kw_only=True):
    """Who runs here. ``silent``: those that something holds in the kernel; ``problem``: why nobody was seen at all."""

    jobs: tuple[JobHere, ...] = ()
    denied: Denied = Denied()
    silent: tuple[int, ...] = ()
    problem: str = ""


class Software(Noun, frozen=True, kw_only=True):
    """Versions. ``torch`` is the one installed beside pardbg, which no job need use; None if there is none."""

    pardbg: str
    python: str
    kernel: str
    torch: str | None = None


class Surroundings(Noun, frozen=True, kw_only=True):
    """All of it, at one moment.

    Attributes:
        environment: the recorder's settings that a job started from here would inherit, by the closed list of names in
            ``collectors/jobs/environment.py``.
    """

    host: str
    observed_at: str
    own: OwnProcess
    settings: KernelSettings
    trial: Trial
    processes: Processes
    software: Software
    environment: dict[str, str] = {}
    devices: DevicesTrial = DevicesTrial()
