"""What the child that attaches is asked, and what it answers: one JSON object, then a JSON line for each rank."""

from pardbg.watchdog.model.base import Noun


class Target(Noun, frozen=True, kw_only=True):
    """A rank, and the folder it shall write to. ``keep_server``: whether torch's worker server stays in it."""

    rank: int
    pid: int
    started_ticks: int
    folder: str
    keep_server: bool = False


class Request(Noun, frozen=True, kw_only=True):
    """Attach to these, in this order."""

    targets: tuple[Target, ...]


class Answer(Noun, frozen=True, kw_only=True):
    """What came of one rank: ``is_fired`` and not ``is_done``: it will do it as soon as its interpreter lock is free."""

    rank: int
    is_fired: bool
    is_done: bool
    why: str = ""
