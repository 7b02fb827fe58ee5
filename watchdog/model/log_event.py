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
    """A rank waited in an operation for longer than its limit. Sizes are numbers of elements, times are milliseconds.

    ``seq`` is None where the watchdog numbers nothing, as those of torch before 1.13.
    """

    group: GroupName = GroupName()
    group_rank: int | None = None
    seq: int | None = None
    op: str
    numel_in: int | None = None
    numel_out: int | None = None
    timeout_ms: int | None = None
    ran_ms: int | None = None

    @property
    def number(self) -> int:
        """``seq``, and -1 where there is none."""
        return -1 if self.seq is None else self.seq


class GroupStatus(LogLine, frozen=True, kw_only=True, tag="group-status"):
    """How far a rank had come in a group when its watchdog noticed: numbers of operations, -1 where there was none.

    ``timed_out``: the global rank whose own timeout made it write this, where it names one.
    """

    group: GroupName = GroupName()
    group_rank: int | None = None
    at_work: int | None = None
    enqueued: int
    completed: int
    timed_out: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether it had issued more than was done: of other groups this says nothing."""
        return self.enqueued > self.completed


class WatchdogStuck(LogLine, frozen=True, kw_only=True, tag="watchdog-stuck"):
    """A watchdog's heartbeat stood still. Never a cause by itself. ``pending``: operations it still had to look after."""

    pending: int | None = None


class LostSign(str, Enum):
    """By what a rank noticed that a peer is lost, or that somebody ended it."""

    CONNECTION = "connection"
    STORE = "store"
    DUMP_SIGNAL = "dump-signal"
    OWN_TIMEOUT = "own-timeout"  # it says that it was the first of its own groups to give up waiting
    TERMINATED = "terminated"
    GLOO_TIMEOUT = "gloo-timeout"
    NCCL_REMOTE = "nccl-remote"
    HCCL_REMOTE = "hccl-remote"


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
    """Two ranks that were about to run different things; ``own`` is the rank that says so; old torch names no other."""

    own: Fingerprint
    other: Fingerprint | None = None


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
    ADAPTER_FAILED = "adapter-failed"  # the network adapter itself, as its driver tells NCCL
    QUEUE_FAILED = "queue-failed"  # one connection of it: either end may be why
    UNREACHABLE = "unreachable"  # another host, when connections were set up
    SHARED_DEVICE = "shared-device"  # two ranks on one GPU
    MISMATCH = "mismatch"  # ranks that issue different collectives


class NcclWarning(LogLine, frozen=True, kw_only=True, tag="nccl-warning"):
    """A warning of NCCL, whose ``process`` has no host where the line does not begin as those of NCCL do.

    Attributes:
        peer: the other end's address where named.
        status: a completion's (12: no retry left).
        comm_ranks: the ranks of the communicator that it names.
    """

    process: NcclProcess
    trouble: Trouble
    peer: str = ""
    status: int | None = None
    comm_ranks: tuple[int, ...] = ()


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
    """An error of the rank's own device or memory, or a crash of its process.

    ``is_survived``: the program says that it went on without the batch. ``is_fatal``: torch ends the
    process of it. ``signal``: by what a crash does.
    """

    is_survived: bool = False
    is_fatal: bool = False
    signal: str = ""


class DispatchTimeout(LogLine, frozen=True, kw_only=True, tag="dispatch-timeout"):
    """An expert-parallel library waited in vain for its peers."""


class LauncherFailure(LogLine, frozen=True, kw_only=True, tag="launcher-failure"):
    """How a launcher says that a process ended: ``code`` as Python writes it (-9), ``pid`` as the launcher counts.

    Attributes:
        rank: the global one, None where the launcher tells none.
        is_called_cause: torchrun calls it the root cause: it is the one that it noticed first.
        called: which process it is, in the launcher's terms.
        is_several: the line tells of several processes at once.
    """

    code: int
    host: str | None = None
    local_rank: int | None = None
    pid: int | None = None
    is_called_cause: bool = False
    called: str = ""
    is_several: bool = False


class KilledForMemory(LogLine, frozen=True, kw_only=True, tag="killed-for-memory"):
    """A scheduler says that a process of the job was killed for memory. ``is_of_task``: a task of it, not a child."""

    host: str | None = None
    is_of_task: bool = False
    teller: str = "Slurm"


class ActorDied(LogLine, frozen=True, kw_only=True, tag="actor-died"):
    """Ray says that a process that ran an actor ended. ``host`` is an address, ``actor`` the name of its class."""

    host: str | None = None
    pid: int | None = None
    actor: str = ""


class StallNamed(LogLine, frozen=True, kw_only=True, tag="stall-named"):
    """Horovod's coordinator names the global ranks that have not submitted what others wait in."""

    absent: tuple[int, ...]


class CancelledByScheduler(LogLine, frozen=True, kw_only=True, tag="cancelled-by-scheduler"):
    """A scheduler ended the job or a step of it, and does not say for which fault. ``is_requeued``: to put it back."""

    is_requeued: bool = False


class StoreBarrier(LogLine, frozen=True, kw_only=True, tag="store-barrier"):
    """A rank (global) waits at the store for all to come; ``joined`` is how many have, ``key`` where they are counted."""

    key: str
    world_size: int
    joined: int
    has_given_up: bool = False


class RendezvousFailed(LogLine, frozen=True, kw_only=True, tag="rendezvous-failed"):
    """A store that not all came to, or that a process could not reach at an ``address``."""

    joined: int | None = None
    expected: int | None = None
    address: str = ""


class AllocatorRetries(LogLine, frozen=True, kw_only=True, tag="allocator-retries"):
    """So often has a rank's allocator had to free its cache before it could give memory, as a trainer counts it."""

    count: int


class TrainingDone(LogLine, frozen=True, kw_only=True, tag="training-done"):
    """The program says that it has trained to the end. ``is_passed``: it worked on soon after, as at the end of a stage."""

    is_passed: bool = False


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
    | KilledForMemory
    | CancelledByScheduler
    | ActorDied
    | StallNamed
    | StoreBarrier
    | RendezvousFailed
    | TrainingDone
    | AllocatorRetries
)

WAITS = (CollectiveTimeout, GroupStatus, WatchdogStuck, StoreTimeout, BarrierFailed, DispatchTimeout, StallNamed)
"""Events that say that somebody waited in vain."""

SECONDARY = (*WAITS, PeerLost)
"""Events that say that a rank waited for others or lost them: by these no rank is the first to fail."""

_ORDINARY = (CommunicatorStep, WayChosen, AllocatorRetries, TrainingDone)


class LogSeen(Noun, frozen=True, kw_only=True, tag="log-seen"):
    """The events of a log that are one rank's, or nobody's, in their order.

    ``is_cut``: there were more than are kept, so that nothing follows from what is missing. ``last_errors``: the last lines
    that speak of an error, where no reader understands any.
    """

    events: tuple[LogEvent, ...]
    is_cut: bool = False
    last_errors: tuple[str, ...] = ()


def tells_fault(seen: LogSeen) -> bool:
    """Whether any event of a log is more than what logs of jobs in good health hold, too."""
    return any(not isinstance(event, _ORDINARY) for event in seen.events)
