"""A heartbeat: a rank's own sign of progress, which its probe (`collectors/probe`) keeps where others can read it."""

from enum import Enum

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.replica import ReplicaSeen


class EndingKind(str, Enum):
    """How a process ended, by its own last words or by those of the signal that ended it."""

    RETURNED = "returned"
    AT_ONCE = "os-exit"
    EXCEPTION = "exception"
    SIGNAL = "signal"


class Ending(Noun, frozen=True, kw_only=True):
    """The last word of a rank.

    Attributes:
        at_ns: epoch ns; None where only the time of a file would tell.
        code: the exit code as Python writes it (-11: SIGSEGV), None where unknown.
        text: ``Type: message`` of an exception that nobody caught, secrets taken out; else empty.
        where: ``file:line function`` where it was raised, else empty.
        is_consequence: the exception says that a peer was lost, or that waiting for one took too long.
        is_doubtful: it may be such a consequence, or the rank's own.
        oom_kills: processes of its memory cgroup that the kernel had killed until then, None if unknown.
    """

    kind: EndingKind
    at_ns: int | None = None
    code: int | None = None
    text: str = ""
    where: str = ""
    is_consequence: bool = False
    is_doubtful: bool = False
    oom_kills: int | None = None


class Heartbeat(Noun, frozen=True, kw_only=True, tag="heartbeat"):
    """What a rank's page says at one moment; ``sample`` numbers the samples of one scan. None: not known.

    Attributes:
        step: optimizer steps finished so far.
        step_ended_ns: when the last one was, epoch ns.
        step_s: how long it took, seconds; ``longest_step_s`` the longest so far.
        phase: what it does beside training steps: ``checkpoint``, ``compile``, ``evaluation``; empty for training.
        phase_since_ns: since when, epoch ns.
        allocated_bytes: of the device's memory, by the allocator; ``reserved_bytes`` with its cache.
        retry_count: how often the allocator had to free its cache before it could give memory.
        own_s: processor time of the probe itself so far, seconds, in ``hook_count`` hooks.
        oom_kills: processes of its memory cgroup that the kernel had killed when the rank started.
        later_oom_kills: the same after the rank has ended, by its peers' last words or the cgroup's own count.
        ending: its last word; None while it lives, and for ever if it was killed by SIGKILL.
        replica: the replica that it holds, where it was looked at.
    """

    sample: int = 0
    step: int | None = None
    step_ended_ns: int | None = None
    step_s: float | None = None
    longest_step_s: float | None = None
    phase: str = ""
    phase_since_ns: int | None = None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    retry_count: int | None = None
    own_s: float | None = None
    hook_count: int | None = None
    oom_kills: int | None = None
    later_oom_kills: int | None = None
    ending: Ending | None = None
    replica: ReplicaSeen | None = None
