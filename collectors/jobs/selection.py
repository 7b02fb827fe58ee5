"""Which of the worlds of this machine the user means. Pure: a census and a query in, one world or an error out."""

from collections.abc import Sequence

from pardbg.collectors.jobs.choices import describe_choices, name_worlds
from pardbg.collectors.jobs.family import Family
from pardbg.collectors.jobs.job_ids import read_job_name, shorten
from pardbg.collectors.jobs.own_world import make_world, require_process
from pardbg.collectors.jobs.process import Census, JobProcess
from pardbg.collectors.jobs.query import ChosenJob, JobQuery
from pardbg.collectors.jobs.worlds import find_worlds
from pardbg.watchdog.errors import AmbiguousJobError, InputError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import JobSource
from pardbg.watchdog.model.world import World

_MOST_NAMES = 5
_WORDS = {
    JobSource.SLURM: "no rank of Slurm job",
    JobSource.KUBERNETES: "no rank of Kubernetes job",
    JobSource.TORCHRUN: "no rank of a job with run id",
    JobSource.RUN: "no rank of a job that `pardbg run` named",
}


def select_world(census: Census, query: JobQuery) -> ChosenJob:
    """Finds the one world that is meant.

    Raises:
        AmbiguousJobError: if several are.
        InputError: if none is.
    """
    worlds = find_worlds(census)
    if query.pids:
        return _select_by_pids(census, query, worlds)
    if query.job is None:
        found, what = list(worlds), "this machine"
        if not found:
            raise _not_found("no process here says that it is a rank (RANK in its environment, or --rank)", worlds, census)
    else:
        name = read_job_name(query.job, worlds)
        found, what = [world for world in worlds if name.means(world)], f"job {shorten(query.job)}"
        if not found:
            raise _not_found(f"{_WORDS[name.source]} {shorten(name.name)} runs on this machine", worlds, census)
    world = _only(_of_size(found, query, worlds, census), what, worlds, census)
    if query.job is None:
        return _by_its_own_name(world)
    return ChosenJob(world=world, source=name.source, job_id=name.name)


def _select_by_pids(census: Census, query: JobQuery, worlds: Sequence[World]) -> ChosenJob:
    """The world that all these processes belong to, or that they form if none of them says that it is a rank."""
    family = Family(census.processes)
    processes = [require_process(pid, census) for pid in dict.fromkeys(query.pids)]
    meant = [_worlds_of(process, worlds, family) for process in processes]
    if not any(meant):
        return _by_its_own_name(make_world(processes, query.world_size, census))
    strangers = [str(process.pid) for process, found in zip(processes, meant, strict=True) if not found]
    if strangers:
        raise InputError(
            f"--pid {', '.join(strangers)} says of no world that it is its rank, and the other processes do",
            remedy="give processes of one world, or only processes that say nothing of a rank",
        )
    common = [world for world in worlds if all(world in found for found in meant)]
    found = common or [world for world in worlds if any(world in found for found in meant)]
    what = "--pid " + " --pid ".join(str(process.pid) for process in processes)
    return _by_its_own_name(_only(_of_size(found, query, worlds, census), what, worlds, census))


def _worlds_of(process: JobProcess, worlds: Sequence[World], family: Family) -> list[World]:
    """The world it is a rank of, else those whose ranks it has started, else that of the rank it is a child of."""
    own = [world for world in worlds if process.pid in _pids(world) or _mentions(world, process.pid)]
    if own:
        return own
    above = frozenset({process.pid})
    below = [
        world
        for world in worlds
        if any((rank := family.get(pid)) is not None and family.has_ancestor(rank, above) for pid in _pids(world))
    ]
    return below or [world for world in worlds if family.has_ancestor(process, _pids(world))]


def _pids(world: World) -> frozenset[int]:
    return frozenset({rank.pid for rank in world.ranks} | {ended.pid for ended in world.ended if ended.pid is not None})


def _mentions(world: World, pid: int) -> bool:
    """Whether it is an older process with the number of one of the ranks."""
    return any(evidence.rank is not None and evidence.origin == f"/proc/{pid}" for evidence in world.evidence)


def _by_its_own_name(world: World) -> ChosenJob:
    if world.job_ids:
        source, name = world.job_ids[0]
        return ChosenJob(world=world, source=source, job_id=name)
    return ChosenJob(world=world, source=JobSource.LOCAL, job_id=f"pid {world.ranks[0].pid}")


def _of_size(found: list[World], query: JobQuery, worlds: Sequence[World], census: Census) -> list[World]:
    if query.world_size is None:
        return found
    fitting = [world for world in found if _size(world) == query.world_size]
    if not fitting:
        sizes = ", ".join(str(size) for size in sorted({_size(world) for world in found}))
        raise _not_found(f"no world of {query.world_size} ranks among what is meant, but of {sizes}", worlds, census)
    return fitting


def _size(world: World) -> int:
    return len(world.ranks) if world.world_size is None else world.world_size


def _only(found: Sequence[World], what: str, worlds: Sequence[World], census: Census) -> World:
    if len(found) > 1:
        raise AmbiguousJobError(f"{what} has {len(found)} worlds", describe_choices(found, worlds, census))
    return found[0]


def _not_found(message: str, worlds: Sequence[World], census: Census) -> InputError:
    """One line: what was looked for, what there is instead, what could not be seen, what to try."""
    names = list(dict.fromkeys(name_worlds(worlds)))
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    here = f" (running here: {', '.join(names[:_MOST_NAMES])}{more})" if names else ""
    details = [evidence.observation.detail for evidence in census.evidence if isinstance(evidence.observation, Absence)]
    unseen = "".join(f"; {detail}" for detail in details[:2])
    remedy = "give one of these" if names else "give --pid for each rank, in the order of the ranks"
    return InputError(f"{message}{here}{unseen}", remedy=remedy)
