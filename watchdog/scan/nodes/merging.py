"""The parts of a job that its nodes have found, put together. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from pardbg.collectors.jobs.query import ChosenJob
from pardbg.watchdog.errors import AmbiguousJobError, InputError
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.world import RankProcess, World
from pardbg.watchdog.scan.nodes.messages import Found


def merge(found: Mapping[str, Found], *, is_whole: bool = True) -> ChosenJob:
    """One job of what the nodes have found, by node. ``is_whole``: every node of the job has answered.

    Raises:
        AmbiguousJobError: if a node has found several worlds.
        InputError: if none has found any, or they have found different ones.
    """
    chosen = {node: answer.chosen for node, answer in found.items() if answer.chosen is not None}
    for answer in found.values():
        if answer.choices:
            raise AmbiguousJobError(answer.problem, answer.choices)
    if not chosen:
        first = next(iter(found.values()), Found(problem="no node has answered", remedy="look at what was not seen"))
        count = f" (and on {len(found) - 1} more nodes)" if len(found) > 1 else ""
        raise InputError(f"{next(iter(found), 'nowhere')}: {first.problem}{count}", remedy=first.remedy)
    keys = Counter(_key(job.world) for job in chosen.values())
    if len(keys) > 1:
        sizes = ", ".join(f"{key[1]} ranks at {key[0] or 'no address'} on {count} nodes" for key, count in keys.most_common(4))
        raise InputError(f"the nodes have {len(keys)} worlds: {sizes}", remedy="say which with --world N")
    first_job = next(iter(chosen.values()))
    return replace(first_job, world=_merge_worlds([job.world for job in chosen.values()], is_whole=is_whole))


def _key(world: World) -> tuple[str, int | None, int | None]:
    return world.store, world.world_size, world.attempt


def _merge_worlds(worlds: Sequence[World], *, is_whole: bool) -> World:
    """Every node knows its own ranks, ended ones included. Of two processes with one rank the younger is the rank.

    Clocks of nodes are not compared: of two nodes that tell of one rank, the one that shows it alive counts. Where a node is
    missing, a rank of which another one only believes that it should be there may live on the missing one.
    """
    ranks: dict[int, RankProcess] = {}
    duplicates: list[Evidence] = []
    for rank in (rank for world in worlds for rank in world.ranks):
        if rank.rank in ranks:
            duplicates.append(_duplicate(rank, ranks[rank.rank]))
        else:
            ranks[rank.rank] = rank
    told = (one for world in worlds for one in world.ended if one.rank not in ranks)
    ended = {one.rank: one for one in told if is_whole or one.pid is not None or one.exit_code is not None}
    return replace(
        worlds[0],
        ranks=tuple(ranks[number] for number in sorted(ranks)),
        ended=tuple(ended[number] for number in sorted(ended)),
        evidence=(*(item for world in worlds for item in world.evidence), *duplicates),
    )


def _duplicate(other: RankProcess, taken: RankProcess) -> Evidence:
    known = f"process {taken.pid} on {taken.host} is taken for it"
    detail = f"process {other.pid} on {other.host} says it is rank {other.rank}, too; {known}"
    return Evidence(
        source=CollectorName.HOST,
        rank=other.rank,
        host=other.host,
        observation=Absence(reason=AbsenceReason.DUPLICATE_RANK, detail=detail),
        origin=f"/proc/{other.pid}",
    )
