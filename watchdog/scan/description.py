"""A running world in the words of `job.json`: which process is which rank, and which have ended."""

from collections.abc import Iterable, Iterator

from pardbg.watchdog.model.evidence import Absence, Evidence, JobDescription, RankDescription
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.model.ranks import fold_ranks
from pardbg.watchdog.model.world import World

GONE = "gone"


def describe_world(world: World, job_id: str | None, looked: Iterable[Evidence], sampled_at: str) -> Evidence:
    """The job description of one sample.

    Args:
        world: its ranks.
        job_id: the name the user knows it by.
        looked: what was seen of the processes; the newest state of each counts.
        sampled_at: when, RFC 3339.
    """
    states = {
        item.rank: item.observation.state
        for item in looked
        if isinstance(item.observation, ProcessSample) and item.rank is not None
    }
    living = [
        RankDescription(
            rank=rank.rank,
            host=rank.host,
            pid=rank.pid,
            local_rank=rank.local_rank,
            state=states.get(rank.rank),
        )
        for rank in world.ranks
    ]
    ended = [
        RankDescription(
            rank=rank.rank,
            host=world.ranks[0].host if world.ranks else None,
            pid=rank.pid,
            state=GONE,
            exit_code=rank.exit_code,
        )
        for rank in world.ended
    ]
    description = JobDescription(
        job=job_id,
        world_size=world.world_size,
        ranks=tuple(sorted((*living, *ended), key=lambda rank: rank.rank)),
        sampled_at=sampled_at,
        world=world.store or None,
        attempt=world.attempt,
    )
    return Evidence(source=CollectorName.HOST, rank=None, observed_at=sampled_at, observation=description, origin="/proc")


def absent_elsewhere(world: World, where: str) -> Iterator[Evidence]:
    """One absence for all ranks that were not found, and one a rank for its recorder, so that none is called lost.

    Args:
        world: what was found.
        where: what was searched, in words.
    """
    here = {*(rank.rank for rank in world.ranks), *(rank.rank for rank in world.ended)}
    elsewhere = [rank for rank in range(world.world_size or 0) if rank not in here]
    if elsewhere:
        detail = f"ranks {fold_ranks(elsewhere)} were not found on {where}"
        yield _absence(None, CollectorName.HOST, AbsenceReason.UNREACHABLE, detail)
    for rank in elsewhere:
        unseen = f"its process was not found on {where}"
        yield _absence(rank, CollectorName.FLIGHT_RECORDER, AbsenceReason.UNREACHABLE, unseen)
    told = {item.rank for item in world.evidence if item.source is CollectorName.FLIGHT_RECORDER}
    for ended in (ended for ended in world.ended if ended.rank not in told):
        yield _absence(ended.rank, CollectorName.FLIGHT_RECORDER, AbsenceReason.GONE, "its process has ended")


def _absence(rank: int | None, source: CollectorName, reason: AbsenceReason, detail: str) -> Evidence:
    return Evidence(source=source, rank=rank, observation=Absence(reason=reason, detail=detail), origin="/proc")
