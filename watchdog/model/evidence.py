"""Evidence: one observed fact, of whom, when, and where it can be read again. Not seeing is a fact too."""

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.recording import Frame, Recording


class StackFrame(Frame, frozen=True, kw_only=True):
    """A frame of a live stack. ``locals`` holds only the few names that say what a rank waits for (collectors' closed list)."""

    locals: dict[str, str] = {}


class Thread(Noun, frozen=True, kw_only=True):
    """One thread, innermost frame first."""

    name: str
    is_active: bool
    owns_gil: bool
    frames: tuple[StackFrame, ...]


class Stack(Noun, frozen=True, kw_only=True, tag="stack"):
    """All threads of one process at one moment; ``sample`` numbers the samples of one scan."""

    pid: int | None
    threads: tuple[Thread, ...]
    sample: int = 0

    @property
    def main_thread(self) -> Thread | None:
        """The thread that trains: Python's main thread, else the first one."""
        named = (thread for thread in self.threads if thread.name == "MainThread")
        return next(named, self.threads[0] if self.threads else None)


class FlightRecording(Noun, frozen=True, kw_only=True, tag="flight-recording"):
    """A dump of a rank's flight recorder; ``sample`` numbers the samples of one scan."""

    recording: Recording
    sample: int = 0


class LogTraceback(Noun, frozen=True, kw_only=True, tag="log-traceback"):
    """The first traceback in a rank's log: its last line (``Type: message``) and the frame that raised.

    ``is_consequence``: it says that a peer was lost, or that waiting for one took too long.
    """

    exception: str
    where: str | None
    is_consequence: bool = False


class RankDescription(Noun, frozen=True, kw_only=True):
    """What ``job.json`` says of one rank. ``state`` is as in ``/proc/PID/stat``, or ``gone``."""

    rank: int
    host: str | None = None
    pid: int | None = None
    local_rank: int | None = None
    gpu_uuid: str | None = None
    pci_bus_id: str | None = None
    state: str | None = None
    exit_code: int | None = None


class JobDescription(Noun, frozen=True, kw_only=True, tag="job"):
    """What ``job.json`` says: the job, its size and its ranks; ``sampled_at`` is RFC 3339 where the writer knew it."""

    job: str | None
    world_size: int | None
    ranks: tuple[RankDescription, ...] = ()
    sampled_at: str | None = None


class Absence(Noun, frozen=True, kw_only=True, tag="absence"):
    """A source that could not be read, and why."""

    reason: AbsenceReason
    detail: str


Observation = FlightRecording | Stack | LogTraceback | JobDescription | Absence


class Evidence(Noun, frozen=True, kw_only=True):
    """One observation. ``rank`` is the global rank it speaks of, if it speaks of one; ``origin`` a path or a command."""

    source: CollectorName
    rank: int | None
    host: str | None = None
    observed_at: str | None = None
    observation: Observation
    origin: str
