"""A process of this machine as far as jobs are concerned, and all of them at one moment: the census."""

from pardbg.collectors.jobs.command_line import Command
from pardbg.collectors.procfs.stat import ProcessStat
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Evidence

_NAMES_OF_PYTHON = ("python", "pypy", "pt_", "ray::", "torchrun")
"""How the names of processes begin that run Python; those of torch name themselves ``pt_...``."""

_NAMES_OF_LAUNCHERS = frozenset({"pt_elastic", "torchrun", "accelerate", "deepspeed"})


def is_name_of_python(name: str) -> bool:
    """Whether a process of this name (``comm``) probably runs Python."""
    return name.startswith(_NAMES_OF_PYTHON)


class ProcessLook(Noun, frozen=True, kw_only=True):
    """What one process answered when it was looked into.

    Attributes:
        started_ticks: clock ticks since boot; with the pid it identifies the process.
        namespace_pids: its numbers from our pid namespace down to its own.
        environment: the kept names only (`environment.py`); empty if it is denied or the process has ended.
        is_python: whether it is an interpreter, or a program that holds one.
        maps_torch: whether torch's library is in its memory; None if that was not looked at.
        mount_namespace: as the kernel names it, e.g. ``mnt:[4026531841]``; empty if it is denied.
        network_namespace: alike.
        inner_uid: what its user is called in its own user namespace; None if that was not looked at, or it has no name there.
        is_denied: whether we may not look into it.
    """

    pid: int
    started_ticks: int
    uid: int
    namespace_pids: tuple[int, ...] = ()
    environment: dict[str, str] = {}
    command: Command = Command()
    is_python: bool = False
    maps_torch: bool | None = None
    mount_namespace: str = ""
    network_namespace: str = ""
    inner_uid: int | None = None
    is_denied: bool = False


class LookRequest(Noun, frozen=True, kw_only=True, tag="look-into-processes"):
    """Asks a child for looks. ``proc`` is where the kernel shows processes, ``silence_s`` how long none may answer."""

    proc: bytes
    pids: tuple[int, ...]
    silence_s: float


class Looks(Noun, frozen=True, kw_only=True, tag="looks"):
    """The child's answer. ``silent`` did not answer it; processes that have ended meanwhile are in neither."""

    processes: tuple[ProcessLook, ...]
    silent: tuple[int, ...] = ()


class JobProcess(Noun, frozen=True, kw_only=True):
    """One process. ``look`` is None if it did not answer: something holds it in the kernel."""

    stat: ProcessStat
    look: ProcessLook | None = None

    @property
    def pid(self) -> int:
        """Its number."""
        return self.stat.pid

    @property
    def age(self) -> tuple[int, int]:
        """Sorts processes, oldest first."""
        return self.stat.started_ticks, self.stat.pid

    @property
    def is_silent(self) -> bool:
        """Whether it gave no answer."""
        return self.look is None

    @property
    def is_denied(self) -> bool:
        """Whether we may not look into it."""
        return self.look is not None and self.look.is_denied

    @property
    def is_ended(self) -> bool:
        """Whether it only waits for its parent to ask for its exit code."""
        return self.stat.state == "Z"

    @property
    def is_launcher(self) -> bool:
        """Whether it starts ranks and is none."""
        return self.stat.name in _NAMES_OF_LAUNCHERS or bool(self.look and self.look.command.launcher)

    @property
    def is_python(self) -> bool:
        """Whether it runs Python, by its name if it does not answer."""
        if self.look is None or self.is_denied or self.is_ended:
            return is_name_of_python(self.stat.name) or bool(self.look and self.look.command.is_python)
        return self.look.is_python

    @property
    def maps_torch(self) -> bool:
        """Whether torch's library is known to be in its memory."""
        return bool(self.look and self.look.maps_torch)

    @property
    def environment(self) -> dict[str, str]:
        """The kept part of its environment."""
        return self.look.environment if self.look else {}


class Census(Noun, frozen=True, kw_only=True):
    """The user processes of a machine at one moment.

    Attributes:
        mount_namespace: our own.
        ticks: the moment, in clock ticks since boot, as start times count.
        ticks_per_s: how many of them are a second.
        observed_at: the moment, RFC 3339.
        evidence: what could not be seen (`Absence`).
    """

    host: str
    processes: tuple[JobProcess, ...]
    mount_namespace: str = ""
    ticks: int = 0
    ticks_per_s: int = 100
    observed_at: str | None = None
    evidence: tuple[Evidence, ...] = ()
