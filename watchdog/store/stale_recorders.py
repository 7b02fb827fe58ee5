"""Flight-recorder dumps of an earlier run, left behind in the folder of this one.

A rank that went missing hours ago has its last operation next to the first that others wait in: their rings reach back to that
moment, or nearly. A dump that ends long before anything the newer dumps hold is of another run, and says nothing of this one.
"""

from collections.abc import Iterable, Iterator, Mapping

from pardbg.watchdog.model.evidence import Evidence, FlightRecording
from pardbg.watchdog.model.recording import Recording

LEAST_GAP_NS = 3_600_000_000_000  # longer than the timeouts of collectives that are in use (10 to 30 min)
LAST_OPERATIONS = 64  # rings are in the order of issue: the newest moment is among the last
GAP_OF_SPAN = 10  # and many times as long as all that the newer dumps hold


def samples_by_rank(evidence: Iterable[Evidence]) -> dict[int, tuple[Recording, ...]]:
    """The recordings of each rank whose recorder was on, oldest sample first, whatever run they are of."""
    by_rank: dict[int, dict[int, Recording]] = {}
    for item in evidence:
        seen = item.observation
        if isinstance(seen, FlightRecording) and item.rank is not None and seen.recording.is_switched_on:
            by_rank.setdefault(item.rank, {})[seen.sample] = seen.recording
    return {rank: tuple(by_rank[rank][sample] for sample in sorted(by_rank[rank])) for rank in sorted(by_rank)}


def stale_ranks(recordings: Mapping[int, Recording]) -> frozenset[int]:
    """The ranks whose dumps end long before everything that is in the newer ones.

    Digests are taken as fresh: they come from processes that live, and leave old operations out.
    """
    spans = sorted(_spans(recordings), reverse=True)
    if not spans:
        return frozenset()
    newest, oldest = spans[0][0], spans[0][1]
    for place, (ended, began, _) in enumerate(spans):
        if oldest - ended > max(LEAST_GAP_NS, GAP_OF_SPAN * (newest - oldest)):
            return frozenset(rank for _, _, rank in spans[place:])
        oldest = min(oldest, began)
    return frozenset()


def _spans(recordings: Mapping[int, Recording]) -> Iterator[tuple[int, int, int]]:
    """The newest and the oldest moment in each dump, epoch ns, and its rank; none of dumps without times."""
    for rank, recording in recordings.items():
        oldest = next((operation.created_ns for operation in recording.operations if operation.created_ns > 0), None)
        if oldest is not None and recording.summary is None:
            last = recording.operations[-LAST_OPERATIONS:]
            yield max(oldest, *(max(operation.created_ns, operation.completed_ns) for operation in last)), oldest, rank
