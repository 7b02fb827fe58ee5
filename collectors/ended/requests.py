"""What a reader's child is asked about ranks that have ended, and what it answers: facts, never the texts."""

from pardbg.collectors.live.recorders.outcome import Outcome
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Stack
from pardbg.watchdog.model.routing import RoutingSeries


class LeftRequest(Noun, frozen=True, kw_only=True, tag="list-left"):
    """List the folders in one root whose processes are gone.

    ``uid`` must own the root and the folders; None for a root that we were told ourselves, which may be anybody's.
    """

    root: bytes
    uid: int | None


class LeftFolder(Noun, frozen=True, kw_only=True):
    """A folder that the probe of a process has left.

    Attributes:
        uid: its owner.
        touched_ns: when the newest file in it was last written, epoch ns.
        exit_code: of a process that its parent has not asked yet, as Python writes it.
    """

    path: bytes
    pid: int
    started_ticks: int
    uid: int
    touched_ns: int
    exit_code: int | None = None


class LeftListed(Noun, frozen=True, kw_only=True, tag="left"):
    """The answer."""

    folders: tuple[LeftFolder, ...]


class LastRequest(Noun, frozen=True, kw_only=True, tag="read-last"):
    """Read the last files of a rank, which must belong to ``uid``.

    Attributes:
        folder: of its probe.
        dumps: where dumps of its recorder may be, in any order; what is older than the process is none of it.
        since_ns: when the process started, epoch ns.
        cgroup: the folder of its memory cgroup.
    """

    folder: bytes
    uid: int
    dumps: tuple[str, ...] = ()
    since_ns: int = 0
    cgroup: str | None = None


class SignalStacks(Noun, frozen=True, kw_only=True):
    """What faulthandler wrote when a signal came. ``code`` is the exit code that follows, if the text tells it."""

    code: int | None
    at_ns: int
    stack: Stack | None
    origin: str


class LastRead(Noun, frozen=True, kw_only=True, tag="last"):
    """The answer. ``dump`` is None where there is none; ``oom_kills`` is what the cgroup counts now.

    ``routing`` is what was counted of how it routes, without a router None.
    """

    dump: Outcome | None = None
    fatal: SignalStacks | None = None
    terminated: SignalStacks | None = None
    interrupted: SignalStacks | None = None
    oom_kills: int | None = None
    routing: RoutingSeries | None = None
