"""What a scan asks for once digests have shown where it matters: entries of the rings, from very few ranks."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.graph.differences import MOST_KINDS, MOST_WANTED, Difference, Differences, find_differences, share
from pardbg.watchdog.model.evidence import Absence, Evidence, FlightRecording
from pardbg.watchdog.model.garbage import without_garbage_collection
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.ranks import fold_briefly
from pardbg.watchdog.model.recording import Recording
from pardbg.watchdog.model.wanted import Cut, Wanted

MOST_RINGS = 16
"""Ranks whose whole rings are fetched: the ends of transfers in a circle, as far as they keep their habits."""


@dataclass(frozen=True)
class Question:
    """What to ask; the answers then speak for the ranks of the differences, and for those asked for their rings.

    ``unasked``: what is not asked for, since there is more of it than anybody wants to carry.
    """

    differences: tuple[Difference, ...] = ()
    rings: tuple[Wanted, ...] = ()
    unasked: tuple[str, ...] = ()

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
    differences = find_differences(situation.progress, groups)
    asked = tuple(Wanted(rank=rank) for rank in rings[:MOST_RINGS])
    return Question(differences.found, asked, tuple(_tell_unasked(differences, rings[MOST_RINGS:])))


def _tell_unasked(differences: Differences, rings: Sequence[int]) -> Iterator[str]:
    if differences.unasked:
        yield f"{differences.unasked} more parts in which recorders differ were not asked for: {MOST_WANTED} were"
    if differences.unlike:
        yield (
            f"what ranks {fold_briefly(differences.unlike)} issued was not asked for: "
            f"more than {MOST_KINDS} ways of one group differ"
        )
    if rings:
        yield f"the whole recorders of ranks {fold_briefly(rings)} were not asked for: those of {MOST_RINGS} others were"


def add_entries(evidence: Sequence[Evidence], question: Question, cuts: Sequence[Cut], sample: int) -> tuple[Evidence, ...]:
    """The evidence of a sample with the answers: whole rings in place of their digests; and with what was not learned."""
    rings = {cut.wanted.rank: cut.recording for cut in cuts if not cut.wanted.group}
    return (*(_with_ring(item, rings) for item in evidence), *_shared(question, cuts, sample), *_unlearned(question, cuts))


def _with_ring(item: Evidence, rings: dict[int, Recording]) -> Evidence:
    ring = rings.get(item.rank) if item.rank is not None else None
    if ring is None or not isinstance(item.observation, FlightRecording):
        return item
    return replace(item, observation=replace(item.observation, recording=ring))


def _shared(question: Question, cuts: Iterable[Cut], sample: int) -> Iterator[Evidence]:
    for rank, entries in share(question.differences, cuts):
        origin = f"entries of rank {rank}, sample {sample}: group {entries.group}"
        yield Evidence(source=CollectorName.FLIGHT_RECORDER, rank=rank, observation=entries, origin=origin)


def _unlearned(question: Question, cuts: Iterable[Cut]) -> Iterator[Evidence]:
    for told in question.unasked:
        yield _skipped(None, AbsenceReason.SKIPPED, told)
    answered = {cut.wanted for cut in cuts}
    for rank in sorted({wanted.rank for wanted in question.wanted if wanted not in answered}):
        yield _skipped(rank, AbsenceReason.LOST, "entries of its recorder that were asked for did not come")


def _skipped(rank: int | None, reason: AbsenceReason, detail: str) -> Evidence:
    observation = Absence(reason=reason, detail=detail)
    return Evidence(source=CollectorName.FLIGHT_RECORDER, rank=rank, observation=observation, origin="entries of recorders")


def _telling(situation: Situation) -> Iterator[int]:
    """Whose history matters beyond what the others have issued: the ranks of which one may have left its habits."""
    for cycle in situation.graph.cycles:
        if any(not isinstance(node, int) and node.is_p2p for node in cycle):
            yield from sorted(node for node in cycle if isinstance(node, int))


def _is_digest(situation: Situation, rank: int) -> bool:
    recording = situation.view.recordings.get(rank)
    return recording is not None and recording.summary is not None
