"""What a scan asks for once digests have shown where it matters: entries of the rings, from very few ranks."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.graph.differences import Difference, find_differences, share
from pardbg.watchdog.model.evidence import Evidence, FlightRecording
from pardbg.watchdog.model.garbage import without_garbage_collection
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.recording import Recording
from pardbg.watchdog.model.wanted import Cut, Wanted

MOST_RINGS = 16
"""Ranks whose whole rings are fetched: the ends of transfers in a circle, as far as they keep their habits."""


@dataclass(frozen=True)
class Question:
    """What to ask; the answers then speak for the ranks of the differences, and for those asked for their rings."""

    differences: tuple[Difference, ...] = ()
    rings: tuple[Wanted, ...] = ()

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """All of it."""
        return (*(difference.wanted for difference in self.differences), *self.rings)


@without_garbage_collection()
def choose_entries(situation: Situation) -> Question:
    """What of the rings would tell more; nothing where nobody waits, the job moves, or the rings are here."""
    recordings = situation.view.recordings.values()
    if situation.motion or not situation.waiting_ranks or all(recording.summary is None for recording in recordings):
        return Question()
    groups = [situation.groups.groups[index] for index in situation.concerned_groups]
    rings = [rank for rank in _telling(situation) if _is_digest(situation, rank)]
    return Question(find_differences(situation.progress, groups), tuple(Wanted(rank=rank) for rank in rings[:MOST_RINGS]))


def add_entries(evidence: Sequence[Evidence], question: Question, cuts: Sequence[Cut], sample: int) -> tuple[Evidence, ...]:
    """The evidence of a sample with the answers: whole rings in place of their digests."""
    rings = {cut.wanted.rank: cut.recording for cut in cuts if not cut.wanted.group}
    return (*(_with_ring(item, rings) for item in evidence), *_shared(question, cuts, sample))


def _with_ring(item: Evidence, rings: dict[int, Recording]) -> Evidence:
    ring = rings.get(item.rank) if item.rank is not None else None
    if ring is None or not isinstance(item.observation, FlightRecording):
        return item
    return replace(item, observation=replace(item.observation, recording=ring))


def _shared(question: Question, cuts: Iterable[Cut], sample: int) -> Iterator[Evidence]:
    for rank, entries in share(question.differences, cuts):
        origin = f"entries of rank {rank}, sample {sample}: group {entries.group}"
        yield Evidence(source=CollectorName.FLIGHT_RECORDER, rank=rank, observation=entries, origin=origin)


def _telling(situation: Situation) -> Iterator[int]:
    """Whose history matters beyond what the others have issued: the ranks of which one may have left its habits."""
    for cycle in situation.graph.cycles:
        if any(not isinstance(node, int) and node.is_p2p for node in cycle):
            yield from sorted(node for node in cycle if isinstance(node, int))


def _is_digest(situation: Situation, rank: int) -> bool:
    recording = situation.view.recordings.get(rank)
    return recording is not None and recording.summary is not None
