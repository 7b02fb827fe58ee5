"""What the trying child is asked and what it answers, one JSON object a line. Errors are names as in ``errno``: ``EPERM``."""

from pardbg.collectors.inside import RankRoot
from pardbg.watchdog.model.base import Noun


class TrialRequest(Noun, frozen=True, kw_only=True, tag="trial"):
    """Try everything on a process of ours.

    Attributes:
        pid: of the process.
        address: of readable bytes in its memory.
        py_spy: the program; empty if there is none.
        folder: for temporary files.
    """

    pid: int
    address: int
    py_spy: str
    folder: str


class RankTarget(Noun, frozen=True, kw_only=True):
    """A rank to look at. ``is_at_home``: it lives in our mount namespace, so that its files are ours."""

    pid: int
    started_ticks: int
    is_at_home: bool

    @property
    def foreign_root(self) -> RankRoot | None:
        """Where its paths begin; None if they are ours."""
        return None if self.is_at_home else RankRoot(pid=self.pid, started_ticks=self.started_ticks)


class RanksRequest(Noun, frozen=True, kw_only=True, tag="ranks"):
    """Look at what ranks have mapped."""

    ranks: tuple[RankTarget, ...]


class SoftwareRequest(Noun, frozen=True, kw_only=True, tag="software"):
    """Say which versions ranks run."""

    ranks: tuple[RankTarget, ...]


Request = TrialRequest | RanksRequest | SoftwareRequest


class MemoryTrial(Noun, frozen=True, kw_only=True):
    """Reading a byte by ``process_vm_readv`` and through ``/proc/PID/mem``; empty where it worked."""

    call_error: str = ""
    file_error: str = ""


class PtraceTrial(Noun, frozen=True, kw_only=True):
    """Holding the process for an instant; empty if it worked."""

    error: str = ""


class ProcessFilesTrial(Noun, frozen=True, kw_only=True):
    """The files of ``/proc/PID`` that say nothing useful here, of ``wchan``, ``syscall``, ``sched``."""

    unusable: tuple[str, ...] = ()


class PySpyTrial(Noun, frozen=True, kw_only=True):
    """py-spy itself.

    Attributes:
        path: where it is; empty if there is none.
        version: as it says; empty if it does not run.
        newest_python: the newest Python 3 it knows (13 is 3.13), None if that cannot be told.
        problem: why it took no stack; empty if it did.
    """

    path: str = ""
    version: str = ""
    newest_python: int | None = None
    problem: str = ""


class KernelLogTrial(Noun, frozen=True, kw_only=True):
    """Reading the kernel log: what was asked, ``/dev/kmsg`` or ``syslog(2)``, and the error, empty if it worked."""

    way: str
    error: str = ""


class OomCounterTrial(Noun, frozen=True, kw_only=True):
    """Reading how many processes of our control group were killed for memory. ``path`` is empty if no file counts them."""

    path: str = ""
    error: str = ""


class ClockReading(Noun, frozen=True, kw_only=True):
    """What the kernel knows of its own clock. ``is_synchronised`` is None if it may not be asked."""

    is_synchronised: bool | None = None
    largest_error_s: float = 0.0


class FileClock(Noun, frozen=True, kw_only=True):
    """A file just written: ``ahead_s`` is how far its time is off ours (negative: behind); None if none could be written."""

    folder: str
    ahead_s: float | None = None
    error: str = ""


class DeviceDriver(Noun, frozen=True, kw_only=True):
    """The NVIDIA driver that is loaded; empty if there is none."""

    version: str = ""


class Trial(Noun, frozen=True, kw_only=True, tag="trial"):
    """What could be done to a process of our own. None: no answer before the deadline.

    Attributes:
        problem: why there was no trial at all, or why it was cut off; empty if there was one.
        is_killed: whether the process that tried was killed for it.
    """

    memory: MemoryTrial | None = None
    process_files: ProcessFilesTrial | None = None
    clock: ClockReading | None = None
    oom_counter: OomCounterTrial | None = None
    py_spy: PySpyTrial | None = None
    ptrace: PtraceTrial | None = None
    driver: DeviceDriver | None = None
    kernel_log: KernelLogTrial | None = None
    file_clock: FileClock | None = None
    problem: str = ""
    is_killed: bool = False


class RankLook(Noun, frozen=True, kw_only=True, tag="rank"):
    """What a rank runs: Python 3's minor number and torch's version, from what it has mapped. None: cannot be told.

    ``why_no_attach`` is why a scan could not attach to it now, ``why_no_files`` why its files cannot be read; empty if it can.
    """

    pid: int
    python: int | None = None
    torch: tuple[int, int] | None = None
    is_denied: bool = False
    why_no_attach: str | None = None
    why_no_files: str | None = None


class RankSoftware(Noun, frozen=True, kw_only=True, tag="software"):
    """Versions that a rank has mapped, the driver that is loaded; None: cannot be told."""

    pid: int
    torch: str | None = None
    nccl: str | None = None
    driver: str | None = None
    python: str | None = None


Answer = Trial | RankLook | RankSoftware
"""A trial comes again and again, each time with one thing more."""
