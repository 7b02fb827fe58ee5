"""The front door: which processes of this machine are the ranks of the job that the user means, or of any job."""

from pathlib import Path

from msgspec.structs import replace

from pardbg.collectors.jobs.census import PROC, take_census
from pardbg.collectors.jobs.identity import identify
from pardbg.collectors.jobs.ownership import only_of
from pardbg.collectors.jobs.process import Census, JobProcess
from pardbg.collectors.jobs.query import ChosenJob, JobQuery
from pardbg.collectors.jobs.selection import select_world
from pardbg.collectors.jobs.worlds import find_worlds
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.world import World

_NODE = "SLURMD_NODENAME"


def find_world(query: JobQuery, *, proc: Path = PROC) -> ChosenJob:
    """Takes a census and selects. Cost and deadline: those of `census.py`.

    Raises:
        AmbiguousJobError: if the query means several worlds; its ``choices`` are the commands that mean one.
        InputError: if it means none.
    """
    census = _census_of(query.node, proc)
    if query.uid is not None:
        return select_world(only_of(census, query.uid, proc), query)
    try:
        return select_world(census, query)
    except InputError:
        owner = _owner_of(query, census)
        if owner is None:
            raise
    return select_world(only_of(census, owner, proc), query)


def _owner_of(query: JobQuery, census: Census) -> int | None:
    """Whose the given processes are: another user's may have taken their place, by saying that they are the same ranks."""
    uids = {process.look.uid for process in census.processes if process.look is not None and process.pid in query.pids}
    return uids.pop() if len(uids) == 1 else None


def find_all_worlds(node: str = "", *, proc: Path = PROC) -> tuple[tuple[World, ...], tuple[Evidence, ...]]:
    """All worlds with a living rank on this machine, the oldest first, and what could not be seen (`Absence`).

    Each is of one user: whoever starts a process that says it is a rank of another's job gets a world of his own.

    Cost and deadline: those of `census.py`.

    Args:
        node: the name of this machine among the nodes of a job (`JobQuery.node`).
        proc: where the kernel shows processes.
    """
    census = _census_of(node, proc)
    uids = {process.look.uid for process in census.processes if process.look is not None and identify(process) is not None}
    worlds = [world for uid in uids for world in find_worlds(only_of(census, uid, proc))]
    return tuple(sorted(worlds, key=lambda world: min(rank.started_ticks for rank in world.ranks))), census.evidence


def _census_of(node: str, proc: Path) -> Census:
    census = take_census(proc, host=node or None)
    if not node:
        return census
    return replace(census, processes=tuple(one for one in census.processes if _may_be_on(node, one)))


def _may_be_on(node: str, process: JobProcess) -> bool:
    return process.look is None or process.look.environment.get(_NODE, node) == node
