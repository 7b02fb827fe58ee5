"""Where a rank's main thread stands: waiting in communication, or on the host, and then why."""

from enum import Enum, auto

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import StackFrame
from pardbg.watchdog.model.names import Cause
from pardbg.watchdog.positions.rules import CauseRule


class Place(Enum):
    """What a stack or a process shows its rank doing."""

    COLLECTIVE = auto()  # inside a collective or its wait
    P2P = auto()  # inside send or recv
    FOREIGN = auto()  # inside another communication library: it waits there
    DEVICE = auto()  # waiting for its device
    HOST = auto()  # anywhere else


class GroupSign(Noun, frozen=True, kw_only=True):
    """What a stack tells of the process group it waits in. ``size`` and ``group_rank`` are None where not known.

    ``label`` is the group's description (``is_described``), or the source text that names it; empty if neither is known.
    The text is a name in a program: one name may mean several groups.
    """

    is_default: bool = False
    size: int | None = None
    group_rank: int | None = None
    label: str = ""
    is_described: bool = False


class Position(Noun, frozen=True, kw_only=True):
    """Where the main thread is. ``frame`` is the telling frame, None where only the process was seen.

    Attributes:
        op: the operation it waits in, bare name; empty where the stack does not tell (``work.wait()``).
        sign: what is known of the group it waits in.
        peer: the peer of a P2P that it waits for, a global rank, if its locals say; or the source of a broadcast.
        is_polling: it asks again and again instead of sleeping through: that it wakes says nothing.
        held_by: what it is blocked on, in the kernel's terms, e.g. ``read of pipe``.
    """

    place: Place
    frame: StackFrame | None = None
    cause: Cause | None = None
    rule: CauseRule | None = None
    op: str = ""
    sign: GroupSign = GroupSign()
    peer: int | None = None
    is_sender: bool = False
    is_polling: bool = False
    held_by: str = ""

    @property
    def words(self) -> str:
        """Completes "rank N is ..."."""
        where = f"at {self.frame.short}" if self.frame else ""
        if self.rule is None:
            return f"{where} ({self.held_by})" if where and self.held_by else where or self.held_by
        return ", ".join(filter(None, [f"{self.rule.words}{self._blocked}", self.frame.short if self.frame else ""]))

    @property
    def _blocked(self) -> str:
        return f" ({self.held_by})" if self.held_by else ""

    @property
    def is_definite(self) -> bool:
        """Whether what was seen shows by itself what holds the rank, not just that it runs user code."""
        return self.place is Place.HOST and self.rule is not None

    @property
    def is_timing(self) -> bool:
        """Whether it waits for kernels of its own that it times: if nothing else is on its device, for nobody."""
        return self.place is Place.DEVICE and self.rule is not None and self.rule.uses_kernels

    @property
    def spot(self) -> tuple[Place, Cause | None, str, str]:
        """What two samples must agree on for the rank to be where it was: not the line, a loop has several."""
        frame = self.frame
        return (self.place, self.cause, frame.filename if frame else "", frame.name if frame else self.held_by)
