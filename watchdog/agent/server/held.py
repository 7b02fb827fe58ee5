"""What the server needs of its agent. All of it is called in the server's thread and must not block."""

from collections.abc import Sequence
from typing import Protocol

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.wanted import Cut, Wanted
from pardbg.watchdog.model.watched import AgentSnapshot, WatchedJob


class Series(Noun, frozen=True, kw_only=True):
    """One quantity of one rank over time. ``points`` are pairs of unix time in seconds and value, the oldest first."""

    name: str
    unit: str
    rank: int
    points: tuple[tuple[float, float], ...]


class Held(Protocol):
    """What an agent holds.

    A job is the part of it that the requester may see: nothing is to be told of ranks that are not in it. A rank is known by
    its ``pid`` and ``started_ticks``: two jobs may have the same ``world`` (loopback addresses in two containers).
    """

    def snapshot(self) -> AgentSnapshot:
        """The newest."""

    def metrics_text(self, accept: str) -> tuple[bytes, str]:
        """The page for Prometheus in one of the forms that an ``Accept`` header names, and its content type."""

    def digest(self, job: WatchedJob) -> Sequence[Evidence]:
        """What was seen of a job last, rings as digests."""

    def entries(self, job: WatchedJob, wanted: Sequence[Wanted]) -> Sequence[Cut]:
        """Entries of the rings of which these are the digests."""

    def series(self, job: WatchedJob, rank: int | None) -> Sequence[Series]:
        """Of one rank, or of all."""

    @property
    def has_devices(self) -> bool:
        """Whether it watches any GPU."""

    def devices(self, job: WatchedJob, sample: int) -> Sequence[Evidence]:
        """What the GPUs of these ranks did in the last quarter of an hour, for the look of that number."""

    def suspect(self, world: str) -> None:
        """Another agent suspects a job, and asks this one to lead."""

    def count(self, name: str) -> None:
        """Counts ``looks`` and ``refusals``, for the snapshot's counts."""
