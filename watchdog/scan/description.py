"""A running world in the words of `job.json`: which process is which rank, and which have ended."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from pardbg.watchdog.model.device import DeviceJoin, DeviceSeen
from pardbg.watchdog.model.evidence import Absence, Evidence, JobDescription, RankDescription
from pardbg.watchdog.model.host_names import fold_hosts_briefly
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.model.ranks import fold_briefly
from pardbg.watchdog.model.world import World

GONE = "gone"
NOTHING: Mapping[str, Absence] = MappingProxyType({})


def describe_world(world: World, job_id: str | None, looked: Iterable[Evidence], sampled_at: str) -> Evidence:
    """The job description of one sample.

    Args:
        world: its ranks.
        job_id: the name the user knows it by.
        looked: what was seen of the processes and their GPUs; the newest state of each counts.
        sampled_at: when, RFC 3339.
    """
    looked = tuple(looked)
    devices = _devices(looked)
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
            gpu_uuid=devices.get(rank.rank, DeviceSeen()).uuid,
            pci_bus_id=devices.get(rank.rank, DeviceSeen()).pci_bus_id,
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


def _devices(looked: Iterable[Evidence]) -> dict[int, DeviceSeen]:
    """The GPU of each rank, where it is no guess."""
    return {
        item.rank: item.observation
        for item in looked
        if item.rank is not None
        and isinstance(item.observation, DeviceSeen)
        and item.observation.joined_by is not DeviceJoin.LOCAL_RANK
    }


def absent_elsewhere(world: World, where: str, silent: Mapping[str, Absence] = NOTHING) -> Iterator[Evidence]:
    """What says of ranks that were not found why nothing is known of them, so that none is called lost.

    Args:
        world: what was found.
        where: what was searched, in words.
        silent: hosts of the job that said nothing, and why. They speak for themselves; here it is told of their ranks.
    """
    here = {*(rank.rank for rank in world.ranks), *(rank.rank for rank in world.ended)}
    elsewhere = [rank for rank in range(world.world_size or 0) if rank not in here]
    if elsewhere and not silent:
        detail = f"{'rank' if len(elsewhere) == 1 else 'ranks'} {fold_briefly(elsewhere)} not found on {where}"
        yield _absence(None, CollectorName.HOST, AbsenceReason.UNREACHABLE, detail)
    hosts = {rank.rank: rank.host for rank in world.ranks}
    places = fold_hosts_briefly(silent) if len(silent) > 1 else ""  # once: there may be thousands of ranks
    for rank in elsewhere:
        yield _unfound(rank, where, {} if _lies_within(rank, hosts) else silent, places)
    told = {item.rank for item in world.evidence if item.source is CollectorName.FLIGHT_RECORDER}
    for ended in (ended for ended in world.ended if ended.rank not in told):
        yield _absence(ended.rank, CollectorName.FLIGHT_RECORDER, AbsenceReason.GONE, "its process has ended")


def _unfound(rank: int, where: str, silent: Mapping[str, Absence], places: str) -> Evidence:
    """It is on the only host that said nothing; or on one of several, ``places`` in words; or nobody knows."""
    if not silent:
        detail = f"its process was not found on {where}"
        return _absence(rank, CollectorName.FLIGHT_RECORDER, AbsenceReason.UNREACHABLE, detail)
    reasons = {absence.reason for absence in silent.values()}
    reason = reasons.pop() if len(reasons) == 1 else AbsenceReason.UNREACHABLE
    if len(silent) > 1:
        detail = f"its process is on one of {places}, which did not answer"
        return _absence(rank, CollectorName.FLIGHT_RECORDER, reason, detail)
    ((host, absence),) = silent.items()
    return _absence(rank, CollectorName.FLIGHT_RECORDER, reason, f"{host} did not answer: {absence.detail}", host)


def _lies_within(rank: int, hosts: Mapping[int, str]) -> bool:
    """Whether its neighbours live on one host that answered, so that it was looked for in the right place."""
    below, above = hosts.get(rank - 1), hosts.get(rank + 1)
    return below is not None and below == above


def _absence(rank: int | None, source: CollectorName, reason: AbsenceReason, detail: str, host: str | None = None) -> Evidence:
    observation = Absence(reason=reason, detail=detail)
    return Evidence(source=source, rank=rank, host=host, observation=observation, origin="/proc")
