"""Evidence: one observed fact, of whom, when, and where it can be read again. Not seeing is a fact too."""

from collections.abc import Mapping

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.device import DeviceSeen
from pardbg.watchdog.model.heartbeat import Ending, EndingKind, Heartbeat
from pardbg.watchdog.model.kernel import KernelLog
from pardbg.watchdog.model.log_event import LogSeen
from pardbg.watchdog.model.members import Run, unfold_members
from pardbg.watchdog.model.names import AbsenceReason, Cause, CollectorName
from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.model.ras import RasSeen
from pardbg.watchdog.model.recording import Frame, Recording
from pardbg.watchdog.model.routing import RoutingSeries
from pardbg.watchdog.model.step_trace import KernelTimes, StepTrace


class Handler(Noun, frozen=True, kw_only=True):
    """An ``except ValueError`` or ``finally`` around a line, and the first and last line of the ``try`` body it belongs to."""

    clause: str
    body: tuple[int, int]


class SourceContext(Noun, frozen=True, kw_only=True):
    """What the source file says of the line a frame is at; everything within the frame's own function.

    Attributes:
        loops: first and last line of every loop around the line, outermost first.
        handlers: the exception handlers the line lies in, outermost first.
        calls: dotted names of the calls on the line, e.g. ``dist.all_reduce``, ``work.wait``.
        group: source text of the process group that a call on the line is given, e.g. ``self.tensor_group``.
        is_polling: whether the innermost loop around the line does little but ask work whether it is completed.
    """

    loops: tuple[tuple[int, int], ...] = ()
    handlers: tuple[Handler, ...] = ()
    calls: tuple[str, ...] = ()
    group: str = ""
    is_polling: bool = False


class StackFrame(Frame, frozen=True, kw_only=True):
    """A frame of a live stack. ``locals`` holds only the few names that say what a rank waits for (collectors' closed list).

    ``source`` is None where the source was not read.
    """

    locals: dict[str, str] = {}
    source: SourceContext | None = None


class Thread(Noun, frozen=True, kw_only=True):
    """One thread, innermost frame first."""

    name: str
    is_active: bool
    owns_gil: bool
    frames: tuple[StackFrame, ...]


class Stack(Noun, frozen=True, kw_only=True, tag="stack"):
    """All threads of one process at one moment; ``sample`` numbers the samples of one scan.

    ``child`` names the process if it is not the rank itself but a child of it; ``is_native`` says that native frames are
    among the Python ones (their file is a library). ``tells_lock``: it knows which thread holds the interpreter lock and which
    ones run; ``is_lock_held``: some thread holds it and does not let go, whichever that is.
    """

    pid: int | None
    threads: tuple[Thread, ...]
    sample: int = 0
    child: str = ""
    is_native: bool = False
    tells_lock: bool = True
    is_lock_held: bool = False

    @property
    def main_thread(self) -> Thread | None:
        """The thread that trains: Python's main thread, else the first one."""
        named = (thread for thread in self.threads if thread.name == "MainThread")
        return next(named, self.threads[0] if self.threads else None)


class FlightRecording(Noun, frozen=True, kw_only=True, tag="flight-recording"):
    """A dump of a rank's flight recorder; ``sample`` numbers the samples of one scan."""

    recording: Recording
    sample: int = 0


class SharedEntries(Noun, frozen=True, kw_only=True, tag="shared-entries"):
    """What several ranks have recorded alike in one group, where their digests have hashes only; read from one of them."""

    group: str
    runs: tuple[Run, ...]
    recording: Recording

    @property
    def ranks(self) -> tuple[int, ...]:
        """Who has recorded it."""
        return unfold_members(self.runs)


class LogTraceback(Noun, frozen=True, kw_only=True, tag="log-traceback"):
    """The first traceback in a rank's log: its last line (``Type: message``) and the frame that raised.

    ``is_consequence``: it says that a peer was lost, or that waiting for one took too long. ``is_doubtful``: it may
    be that, or the rank's own. ``at_ns``: as in `LogLine`.
    ``is_passed``: its writer wrote much after it, so that it is hardly what ended the rank. ``is_signed``: its lines begin with
    ``[rankN]:``, as torch's hook for exceptions that nobody caught writes them, or torchrun reports it. ``others``: what else
    was raised in lines that nobody signs, so that they may be several ranks'. ``is_by_launcher``: nobody signs it, and its rank
    is the only one that the launcher of the same log reports as failed. ``is_caught``: a thread's, a task's, or logged by the
    program, so that it need not have ended the process.
    """

    exception: str
    where: str | None
    is_consequence: bool = False
    at_ns: int | None = None
    is_passed: bool = False
    is_signed: bool = False
    is_doubtful: bool = False
    others: tuple[str, ...] = ()
    is_by_launcher: bool = False
    is_caught: bool = False

    @classmethod
    def of_endings(cls, endings: Mapping[int, Ending]) -> "dict[int, LogTraceback]":
        """The exceptions that were the last words of ranks."""
        return {
            rank: cls(
                exception=ending.text,
                where=ending.where or None,
                is_consequence=ending.is_consequence,
                is_doubtful=ending.is_doubtful,
            )
            for rank, ending in endings.items()
            if ending.kind is EndingKind.EXCEPTION
        }


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
    world: str | None = None
    attempt: int | None = None


class SoftwareSeen(Noun, frozen=True, kw_only=True, tag="software"):
    """The versions that a rank's process has mapped, and its host's driver; None: not known."""

    torch: str | None = None
    nccl: str | None = None
    driver: str | None = None
    python: str | None = None


class SchedulerEnding(Noun, frozen=True, kw_only=True, tag="scheduler-ending"):
    """Why a scheduler says that the whole job ended.

    Attributes:
        claim: one sentence.
        cause: the word of the contract, where it has one: preempted, node-lost.
        at: RFC 3339, None if not said.
        hosts: the nodes that failed, where known.
        advice: what to try.
        is_from_outside: whether the scheduler or a person ended it, so that no rank is to blame for the end.
        is_hearsay: whether only lines in the job's own output say so, which anybody can print.
    """

    claim: str
    cause: Cause | None = None
    at: str | None = None
    hosts: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    is_from_outside: bool = False
    is_hearsay: bool = False


class Absence(Noun, frozen=True, kw_only=True, tag="absence"):
    """A source that could not be read, and why."""

    reason: AbsenceReason
    detail: str


Observation = (
    FlightRecording
    | SharedEntries
    | Stack
    | ProcessSample
    | DeviceSeen
    | Heartbeat
    | LogTraceback
    | LogSeen
    | JobDescription
    | SoftwareSeen
    | SchedulerEnding
    | RoutingSeries
    | KernelLog
    | RasSeen
    | StepTrace
    | KernelTimes
    | Absence
)


class Evidence(Noun, frozen=True, kw_only=True):
    """One observation. ``rank`` is the global rank it speaks of, if it speaks of one; ``origin`` a path or a command."""

    source: CollectorName
    rank: int | None
    host: str | None = None
    observed_at: str | None = None
    observation: Observation
    origin: str
