"""What one line of a rank's log tells, beyond tracebacks: who waited for what, who was lost, how a process ended.

Four kinds of numbers are called "rank" in logs, and none stands for another: ``rank`` is the global rank, ``group_rank`` that
in a process group, ``comm_rank`` that in an NCCL communicator, and the bracket of an NCCL line is a CUDA device.
"""

from enum import Enum

from pardbg.watchdog.model.base import Noun


class LogLine(Noun, frozen=True, kw_only=True):
    """What every event has.

    Attributes:
        at_ns: ns since the year began by the writer's clock and time zone: c10d's lines name neither year nor zone.
        rank: the global rank that signs the line, None where none does.
        text: the line itself without what launchers put before it, shortened, without secrets.
    """

    at_ns: int | None = None
    rank: int | None = None
    text: str = ""


class GroupName(Noun, frozen=True, kw_only=True):
    """A process group as a watchdog calls it: its name is the same on all members (a ``PG ID`` is not, and not kept)."""

    name: str = ""
    desc: str = ""

    @property
    def is_world(self) -> bool:
        """Whether its ranks are the global ones."""
        return self.desc == "default_pg"


class CollectiveTimeout(LogLine, frozen=True, kw_only=True, tag="collective-timeout"):
    """A rank waited in an operation for longer than its limit. Sizes are numbers of elements, times are milliseconds."""

    group: GroupName = GroupName()
    group_rank: int | None = None
    seq: int
    op: str
    numel_in: int | None = None
    numel_out: int | None = None
    timeout_ms: int | None = None
    ran_ms: int | None = None


class GroupStatus(LogLine, frozen=True, kw_only=True, tag="group-status"):
    """How far a rank had come in a group when its watchdog noticed: numbers of operations, -1 where there was none."""

    group: GroupName = GroupName()
    group_rank: int | None = None
    at_work: int | None = None
    enqueued: int
    completed: int


class WatchdogStuck(LogLine, frozen=True, kw_only=True, tag="watchdog-stuck"):
    """A watchdog's heartbeat stood still. Never a cause by itself. ``pending``: operations it still had to look after."""

    pending: int | None = None


class LostSign(str, Enum):
    """By what a rank noticed that a peer is lost, or that somebody ended it."""

    CONNECTION = "connection"
    STORE = "store"
    DUMP_SIGNAL = "dump-signal"
    TERMINATED = "terminated"
    GLOO_TIMEOUT = "gloo-timeout"
    NCCL_REMOTE = "nccl-remote"


class PeerLost(LogLine, frozen=True, kw_only=True, tag="peer-lost"):
    """A secondary error: it follows from another process's."""

    sign: LostSign


class StoreTimeout(LogLine, frozen=True, kw_only=True, tag="store-timeout"):
    """A key was never set. ``waits_for``: the group rank that had to set it, where the line names it."""

    keys: str = ""
    waits_for: int | None = None


class BarrierFailed(LogLine, frozen=True, kw_only=True, tag="barrier-failed"):
    """A monitored barrier that some did not reach: ``absent`` are group ranks. ``is_hearsay``: so says one that had."""

    absent: tuple[int, ...]
    group_rank: int | None = None
    is_hearsay: bool = False


class Fingerprint(Noun, frozen=True, kw_only=True):
    """What a rank was about to run, in detail mode."""

    group_rank: int
    seq: int | None = None
    op: str = ""
    shape: str = ""
    dtype: str = ""


class FingerprintMismatch(LogLine, frozen=True, kw_only=True, tag="fingerprint-mismatch"):
    """Two ranks that were about to run different things; ``own`` is the rank that says so."""

    own: Fingerprint
    other: Fingerprint


class NcclProcess(Noun, frozen=True, kw_only=True):
    """Who writes a line of NCCL: host, pid as its own namespace counts (not the host's), and CUDA device (not a rank)."""

    host: str
    pid: int
    device: int | None = None


class CommunicatorStep(LogLine, frozen=True, kw_only=True, tag="communicator-step"):
    """A communicator's set-up began or was completed, or the communicator was ended."""

    process: NcclProcess
    id: str
    comm_rank: int
    size: int
    bus_id: str | None = None
    step: str


class Trouble(str, Enum):
    """What NCCL, or a library beside it, warns of."""

    SHM_FULL = "shm-full"
    OUT_OF_MEMORY = "out-of-memory"
    NVLS = "nvls"
    PORT_ERROR = "port-error"
    COMPLETION_ERROR = "completion-error"
    CUDA_FAILURE = "cuda-failure"
    NO_INTERFACE = "no-interface"


class NcclWarning(LogLine, frozen=True, kw_only=True, tag="nccl-warning"):
    """A warning of NCCL. ``peer``: the other end's address where named; ``status``: a completion's (12: no retry left)."""

    process: NcclProcess
    trouble: Trouble
    peer: str = ""
    status: int | None = None


class Way(str, Enum):
    """How NCCL goes between ranks, and what kept it from going better."""

    SOCKET = "socket"
    INFINIBAND = "infiniband"
    NO_INFINIBAND = "no-infiniband"
    INFINIBAND_OFF = "infiniband-off"
    P2P = "p2p"
    SHM = "shm"
    P2P_OFF = "p2p-off"
    DIRECT_RDMA_OFF = "direct-rdma-off"


class WayChosen(LogLine, frozen=True, kw_only=True, tag="way-chosen"):
    """A way that NCCL took on a host."""

    process: NcclProcess
    way: Way


class OwnFailure(LogLine, frozen=True, kw_only=True, tag="own-failure"):
    """An error of the rank's own device or memory. ``is_survived``: the program says that it went on without the batch."""

    is_survived: bool = False


class DispatchTimeout(LogLine, frozen=True, kw_only=True, tag="dispatch-timeout"):
    """An expert-parallel library waited in vain for its peers."""


class LauncherFailure(LogLine, frozen=True, kw_only=True, tag="launcher-failure"):
    """One block of torchrun's report: ``rank`` is global, ``code`` as Python writes it (-9), ``pid`` as the launcher counts.

    ``is_called_cause``: torchrun calls it the root cause: it is the one that it noticed first.
    """

    code: int
    host: str | None = None
    local_rank: int | None = None
    pid: int | None = None
    is_called_cause: bool = False


class AllocatorRetries(LogLine, frozen=True, kw_only=True, tag="allocator-retries"):
    """So often has a rank's allocator had to free its cache before it could give memory, as a trainer counts it."""

    count: int


class TrainingDone(LogLine, frozen=True, kw_only=True, tag="training-done"):
    """The program says that it has trained to the end."""


LogEvent = (
    CollectiveTimeout
    | GroupStatus
    | WatchdogStuck
    | PeerLost
    | StoreTimeout
    | BarrierFailed
    | FingerprintMismatch
    | CommunicatorStep
    | NcclWarning
    | WayChosen
    | OwnFailure
    | DispatchTimeout
    | LauncherFailure
    | TrainingDone
    | AllocatorRetries
)

WAITS = (CollectiveTimeout, GroupStatus, WatchdogStuck, StoreTimeout, BarrierFailed, DispatchTimeout)
"""Events that say that somebody waited in vain."""

SECONDARY = (*WAITS, PeerLost)
"""Events that say that a rank waited for others or lost them: by these no rank is the first to fail."""


class LogSeen(Noun, frozen=True, kw_only=True, tag="log-seen"):
    """The events of a log that are one rank's, or nobody's, in their order.

    ``is_cut``: there were more than are kept, so that nothing follows from what is missing.
    """

    events: tuple[LogEvent, ...]
    is_cut: bool = False
