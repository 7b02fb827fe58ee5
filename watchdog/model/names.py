"""The closed vocabularies of a report: kinds, causes, states, reasons. Their spelling is fixed by the contract."""

from enum import Enum


class Kind(str, Enum):
    """What is wrong."""

    MISSING_PARTICIPANT = "missing-participant"
    DESYNC = "desync"
    ORDER_INVERSION = "order-inversion"
    GROUP_MISMATCH = "group-mismatch"
    P2P_DEADLOCK = "p2p-deadlock"
    P2P_UNMATCHED = "p2p-unmatched"
    DEAD_RANK = "dead-rank"
    DEVICE_STUCK = "device-stuck"
    COMM_STUCK = "comm-stuck"
    MULTI_COMM_DEADLOCK = "multi-comm-deadlock"
    INIT_STUCK = "init-stuck"
    TEARDOWN_STUCK = "teardown-stuck"
    SLOW_PHASE = "slow-phase"
    STRAGGLER = "straggler"
    ROUTER_COLLAPSE = "router-collapse"
    DROP_SPIKE = "drop-spike"
    DEAD_EXPERTS = "dead-experts"
    EP_IMBALANCE = "ep-imbalance"
    ROUTER_NO_GRADIENT = "router-no-gradient"
    REPLICA_DIVERGENCE = "replica-divergence"
    CONFIG_MISMATCH = "config-mismatch"
    LAYOUT_INVALID = "layout-invalid"
    LAYOUT_WARNING = "layout-warning"
    INSUFFICIENT_EVIDENCE = "insufficient-evidence"


ROUTING_KINDS = (
    Kind.ROUTER_NO_GRADIENT,
    Kind.ROUTER_COLLAPSE,
    Kind.DEAD_EXPERTS,
    Kind.EP_IMBALANCE,
    Kind.DROP_SPIKE,
)
"""The illnesses of MoE routing, causes before consequences."""

ILLNESSES = (Kind.REPLICA_DIVERGENCE, *ROUTING_KINDS)
"""What is wrong with training that goes on: it makes nobody wait, and is certain whatever was not seen of the rest."""


class Cause(str, Enum):
    """Why the culprit is where it is. The contract lists which causes go with which kind."""

    # missing-participant and slow-phase
    DATA_LOADING = "data-loading"
    CHECKPOINT_IO = "checkpoint-io"
    FILE_IO = "file-io"
    NETWORK_IO = "network-io"
    LOCK = "lock"
    GIL_HELD = "gil-held"
    GC = "gc"
    COMPILE = "compile"
    STORE_WAIT = "store-wait"
    NATIVE_CODE = "native-code"
    BUSY_LOOP = "busy-loop"
    USER_CODE = "user-code"
    SLEEPING = "sleeping"
    DEBUGGER = "debugger"
    LEFT_LOOP = "left-loop"
    STOPPED = "stopped"
    # dead-rank
    OOM_KILLED = "oom-killed"
    SIGNAL = "signal"
    EXCEPTION = "exception"
    EXITED = "exited"
    NODE_LOST = "node-lost"
    PREEMPTED = "preempted"
    # device-stuck
    XID = "xid"
    ECC = "ecc"
    NVLINK = "nvlink"
    GPU_LOST = "gpu-lost"
    GPU_KERNEL = "gpu-kernel"
    # comm-stuck
    NETWORK = "network"
    NCCL = "nccl"
    P2P_ACCESS = "p2p-access"
    FOREIGN_COMM = "foreign-comm"
    # init-stuck
    NOT_STARTED = "not-started"
    INTERFACE = "interface"
    SHM = "shm"
    BOOTSTRAP = "bootstrap"
    # straggler, besides data-loading and gc
    COMPUTE = "compute"
    H2D = "h2d"
    LINK = "link"
    THERMAL = "thermal"
    POWER = "power"
    CPU_CONTENTION = "cpu-contention"
    NUMA = "numa"
    SEQUENCE_LENGTH = "sequence-length"
    PIPELINE_STAGE = "pipeline-stage"
    EXPERT_LOAD = "expert-load"
    ALLOCATOR = "allocator"
    ROTATING = "rotating"
    # replica-divergence
    SAME_DATA = "same-data"


class Status(str, Enum):
    """The state of the whole job."""

    HEALTHY = "healthy"
    HUNG = "hung"
    SLOW = "slow"
    FAILED = "failed"
    DEGRADED = "degraded"
    UNDETERMINED = "undetermined"


class Confidence(str, Enum):
    """How sure a finding is. ``established`` needs a known process state, or two samples and the rank's own stack."""

    ESTABLISHED = "established"
    SUPPORTED = "supported"
    SUGGESTED = "suggested"


class Scope(str, Enum):
    """What a culprit, candidate or ``waiting_for`` names."""

    RANK = "rank"
    HOST = "host"
    DEVICE = "device"
    LINK = "link"
    STAGE = "stage"
    GROUP = "group"


class Mismatch(str, Enum):
    """What differs at a first divergence: the first that applies, in this order."""

    OP = "op"
    DTYPE = "dtype"
    SIZE = "size"
    SPLITS = "splits"
    ROOT = "root"
    CALL_SITE = "call-site"


class Edit(str, Enum):
    """What must be done to the culprit's sequence of operations to make it match the others'."""

    SKIPPED = "skipped"
    EXTRA = "extra"
    SWAPPED = "swapped"


class JobSource(str, Enum):
    """Who knows the job by its id."""

    SLURM = "slurm"
    KUBERNETES = "kubernetes"
    TORCHRUN = "torchrun"
    RUN = "run"
    LOCAL = "local"
    FILES = "files"


class CollectorName(str, Enum):
    """The sources of evidence, as the coverage and every evidence line spell them."""

    FLIGHT_RECORDER = "flight-recorder"
    STACKS = "stacks"
    HOST = "host"
    GPU = "gpu"
    RAS = "ras"
    KERNEL_LOG = "kernel-log"
    RANK_LOG = "rank-log"
    FABRIC = "fabric"
    ROUTING = "routing"


class AbsenceReason(str, Enum):
    """Why a source could not be seen."""

    NOT_INSTALLED = "not-installed"
    SWITCHED_OFF = "switched-off"
    DENIED = "denied"
    TIMED_OUT = "timed-out"
    UNREADABLE = "unreadable"
    UNREACHABLE = "unreachable"
    UNSUPPORTED = "unsupported"
    EMPTY = "empty"
    SKIPPED = "skipped"
    LOST = "lost"
    GONE = "gone"
    DUPLICATE_RANK = "duplicate-rank"
