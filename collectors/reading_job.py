"""What the reader asks its children of the files of a live job, and what they answer: facts, never the texts."""

from pardbg.collectors.ended.requests import LastRead, LastRequest, LeftListed, LeftRequest
from pardbg.collectors.inside import RankRoot
from pardbg.collectors.live.recorders.outcome import Refusal
from pardbg.collectors.parsing.log_events import RankEvents
from pardbg.collectors.parsing.rank_file import RankFile
from pardbg.collectors.parsing.rank_log import RankTraceback
from pardbg.collectors.parsing.slurm_notices import SlurmNotice
from pardbg.collectors.probe.places import PAGE_FILE
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import SourceContext, Stack
from pardbg.watchdog.model.heartbeat import Heartbeat
from pardbg.watchdog.model.kernel import KernelLog
from pardbg.watchdog.model.ras import RasSeen
from pardbg.watchdog.model.recording import GroupConfig
from pardbg.watchdog.model.routing import RoutingSeries


class SourceRequest(Noun, frozen=True, kw_only=True, tag="read-source"):
    """Read a source file and say what surrounds these lines.

    ``inside``: whose root the path begins at, None for our own. There it must be ``uid``'s, or readable by everybody. It is
    read with the rights of ``uid`` and of the groups of the process ``whose``.
    """

    path: bytes
    lines: tuple[int, ...]
    inside: RankRoot | None = None
    uid: int = 0
    whose: RankRoot | None = None


class SourceRead(Noun, frozen=True, kw_only=True, tag="source"):
    """The answer: by line, without those that hold no statement; and when the file last changed, epoch ns."""

    contexts: dict[int, SourceContext]
    changed_ns: int


class OutputsRequest(Noun, frozen=True, kw_only=True, tag="list-outputs"):
    """Say which regular files a process writes its output to: standard output and error, or, ``is_wide``, further text files.

    ``started_ticks`` tells the process from a later one of the same number.
    """

    pid: int
    started_ticks: int
    is_wide: bool = False


class OutputFile(Noun, frozen=True, kw_only=True):
    """One such file. ``path`` is for people, ``is_launchers`` says that the parent process writes into it too."""

    descriptor: int
    device: int
    inode: int
    path: str
    is_launchers: bool = False


class OutputsListed(Noun, frozen=True, kw_only=True, tag="outputs"):
    """The answer: each file once."""

    files: tuple[OutputFile, ...]


class OutputRequest(Noun, frozen=True, kw_only=True, tag="read-output"):
    """Read the end of what is behind a descriptor of a process. ``live_pids`` are all ranks that write there."""

    pid: int
    started_ticks: int
    descriptor: int
    live_pids: tuple[int, ...] = ()


class OutputRead(Noun, frozen=True, kw_only=True, tag="output"):
    """The answer: tracebacks of the present attempt, and the stacks that faulthandler wrote at the end, if it did.

    ``signed_by`` are the ranks that sign lines of it, ``events`` what else its lines tell.
    """

    tracebacks: tuple[RankTraceback, ...]
    signed_by: frozenset[int]
    stack: Stack | None
    mtime_ns: int
    events: tuple[RankEvents, ...] = ()


class ProbeRequest(Noun, frozen=True, kw_only=True, tag="read-probe"):
    """Read what a process's probe keeps in a folder that must belong to ``uid`` alone.

    ``pid`` is the process's number in its own pid namespace; ``inside``: whose root the folder's name begins at, None for ours.
    """

    folder: bytes
    pid: int
    started_ticks: int
    uid: int
    inside: RankRoot | None = None


class ProbeRead(Noun, frozen=True, kw_only=True, tag="probe"):
    """The answer; all empty if the process has no probe. ``groups`` are in the order in which they were made."""

    own: RankFile | None = None
    heartbeat: Heartbeat | None = None
    groups: tuple[GroupConfig, ...] = ()
    problems: tuple[Refusal, ...] = ()


class PageRequest(Noun, frozen=True, kw_only=True, tag="hold-page"):
    """Open the page of a probe, or its file of routing, and hold it open for as long as you live."""

    probe: ProbeRequest
    name: str = PAGE_FILE


class PageHeld(Noun, frozen=True, kw_only=True, tag="page-held"):
    """The answer: the number of the descriptor in the child; None if there is no page in memory that may be believed.

    ``is_on_disk``: there is one, but not in memory.
    """

    descriptor: int | None
    is_on_disk: bool = False


class RoutingRequest(Noun, frozen=True, kw_only=True, tag="read-routing"):
    """Read what a probe has counted of routing, wherever it lies."""

    probe: ProbeRequest


class RoutingRead(Noun, frozen=True, kw_only=True, tag="routing-read"):
    """The answer. ``series`` is None if there is no such file; then ``has_probe`` and ``is_switched_off`` say why."""

    series: RoutingSeries | None = None
    has_probe: bool = False
    is_switched_off: bool = False


class ScriptOutputRequest(Noun, frozen=True, kw_only=True, tag="read-script-output"):
    """Read the end of the file that a batch job's script wrote to. Links on the way are followed, as its writer did."""

    path: bytes


class ScriptOutput(Noun, frozen=True, kw_only=True, tag="script-output"):
    """The answer: what ranks that sign their lines raised, and what Slurm itself wrote there."""

    tracebacks: tuple[RankTraceback, ...] = ()
    signed_by: frozenset[int] = frozenset()
    notices: tuple[SlurmNotice, ...] = ()
    mtime_ns: int = 0


class KernelLogRequest(Noun, frozen=True, kw_only=True, tag="read-kernel-log"):
    """Read the kernel log of this host; what concerns processes and links since a moment, seconds since the boot."""

    since_up_s: float


class KernelLogRead(Noun, frozen=True, kw_only=True, tag="kernel-log-read"):
    """The answer: its events, and the way they were read."""

    log: KernelLog
    way: str


class RasRequest(Noun, frozen=True, kw_only=True, tag="ask-ras"):
    """Ask NCCL's RAS service on a port of this machine, if only these processes (number, start) listen there.

    ``stamp`` is a file whose age says when it was asked last; ``within_s`` how long the conversation may take.
    """

    port: int
    processes: tuple[tuple[int, int], ...]
    within_s: float
    stamp: str


class RasRead(Noun, frozen=True, kw_only=True, tag="ras-read"):
    """The answer. ``seen`` is None if nobody listens who may be asked; ``is_too_soon``: it was asked a moment ago."""

    seen: RasSeen | None = None
    is_too_soon: bool = False


JobRequest = (
    SourceRequest
    | OutputsRequest
    | OutputRequest
    | ProbeRequest
    | PageRequest
    | RoutingRequest
    | LeftRequest
    | LastRequest
    | ScriptOutputRequest
    | KernelLogRequest
    | RasRequest
)
JobReply = (
    SourceRead
    | OutputsListed
    | OutputRead
    | ProbeRead
    | PageHeld
    | RoutingRead
    | LeftListed
    | LastRead
    | ScriptOutput
    | KernelLogRead
    | RasRead
)
