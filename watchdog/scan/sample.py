"""What was seen at one moment."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from msgspec import structs

from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.names import AbsenceReason, CollectorName


@dataclass(frozen=True)
class Sample:
    """What was seen at one moment. ``taken_at`` is RFC 3339, ``taken_at_s`` on the monotonic clock.

    ``refused_ranks`` may not be looked into from outside.
    """

    evidence: tuple[Evidence, ...]
    taken_at: str
    taken_at_s: float
    refused_ranks: frozenset[int] = frozenset()

    @property
    def lost_ranks(self) -> frozenset[int]:
        """The ranks whose processes are no longer those that were found."""
        return frozenset(
            item.rank
            for item in self.evidence
            if item.source is CollectorName.HOST
            and item.rank is not None
            and isinstance(item.observation, Absence)
            and item.observation.reason is AbsenceReason.GONE
        )

    def without_recorders(self, ranks: Collection[int | None]) -> "Sample":
        """The same without what it says of the recorders of these ranks: they have been reached in another way since."""
        kept = (item for item in self.evidence if item.source is not CollectorName.FLIGHT_RECORDER or item.rank not in ranks)
        return replace(self, evidence=tuple(kept))

    def with_recorders_left(self, ranks: Collection[int], why: str) -> "Sample":
        """The same; that the recorders of these ranks were not reached is what was wanted."""
        return replace(self, evidence=tuple(_left(item, ranks, why) for item in self.evidence))

    def with_more(self, more: Iterable[Evidence]) -> "Sample":
        """The same with more evidence."""
        return replace(self, evidence=(*self.evidence, *more))


def _left(item: Evidence, ranks: Collection[int], why: str) -> Evidence:
    is_recorder = item.source is CollectorName.FLIGHT_RECORDER and item.rank in ranks
    if not is_recorder or not isinstance(item.observation, Absence):
        return item
    return structs.replace(item, observation=Absence(reason=AbsenceReason.SKIPPED, detail=why))


class InterruptedSampleError(KeyboardInterrupt):
    """Ctrl-C has come while a sample was taken; ``sample`` is what had been seen."""

    def __init__(self, sample: Sample) -> None:
        super().__init__()
        self.sample = sample
