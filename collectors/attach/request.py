"""What the child that attaches is asked, and what it answers: JSON lines. The end of its input means: leave."""

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import AbsenceReason


class Target(Noun, frozen=True, kw_only=True):
    """A rank, and the folder it shall write to, which belongs to its user."""

    rank: int
    pid: int
    started_ticks: int
    uid: int
    root: str
    folder: str


class Request(Noun, frozen=True, kw_only=True):
    """Attach to these, in this order. ``until_s``: begin no more after that, on the monotonic clock."""

    targets: tuple[Target, ...]
    until_s: float


class KeepRequest(Noun, frozen=True, kw_only=True):
    """Make all that were attached to run torch's worker server for good."""

    until_s: float


class Answer(Noun, frozen=True, kw_only=True):
    """What came of one rank.

    Attributes:
        is_done: it has done it. If not, and ``is_fired``, it will do so once its interpreter lock is free.
        is_serving: a worker server of ours answers in its folder.
        reason: why it has not been done, ``detail`` the same in words.
        stopped_s: for how long one of its threads stood still.
    """

    rank: int
    is_done: bool = False
    is_fired: bool = False
    is_serving: bool = False
    reason: AbsenceReason = AbsenceReason.UNSUPPORTED
    detail: str = ""
    stopped_s: float | None = None
