"""What of a job somebody may see: his own ranks, an admin everything, a user of Kubernetes what is in a namespace of his.

Ranks are asked, not jobs: anybody can start a process that says it is a rank of another's job.
"""

from msgspec.structs import replace

from pardbg.collectors.jobs.job_ids import read_job_name
from pardbg.watchdog.agent.server.kubernetes import Kubernetes
from pardbg.watchdog.agent.server.requester import Requester, Right
from pardbg.watchdog.model.names import JobSource
from pardbg.watchdog.model.watched import AgentSnapshot, WatchedJob
from pardbg.watchdog.model.world import World

_VERBS = {Right.READ: "get", Right.LOOK: "create"}


def named(snapshot: AgentSnapshot, text: str) -> list[WatchedJob]:
    """The jobs that answer to a name as a user types it, or whose world it is. Names are compared, and nothing else."""
    exact = [job for job in snapshot.jobs if text in {job.world, job.job_id}]
    worlds = [World(world_size=None, ranks=(), job_ids=job.names) for job in snapshot.jobs]
    name = read_job_name(text, worlds)
    return exact or [job for job, world in zip(snapshot.jobs, worlds, strict=True) if name.means(world)]


def own_part(job: WatchedJob, uid: int) -> WatchedJob | None:
    """What of a job is a user's; None if nothing is. Incident and layers are of all ranks: they belong to who owns all."""
    ranks = tuple(rank for rank in job.ranks if rank.uid == uid)
    if not ranks:
        return None
    return job if len(ranks) == len(job.ranks) else replace(job, ranks=ranks, uids=(uid,), incident=None, layers=())


def namespace_of(job: WatchedJob) -> str | None:
    """The namespace of a Kubernetes job; None if it is none, or says two."""
    spaces = {name.partition("/")[0] for source, name in job.names if source is JobSource.KUBERNETES and "/" in name}
    return spaces.pop() if len(spaces) == 1 and "*" not in spaces else None


class Authoriser:
    """Says what is whose."""

    def __init__(self, kubernetes: Kubernetes | None = None) -> None:
        self._kubernetes = kubernetes

    async def part_of(self, job: WatchedJob, requester: Requester, right: Right) -> WatchedJob | None:
        """What of a job somebody may read or look at; None for nothing.

        Raises:
            RefusedError: if Kubernetes would have to say, and does not.
        """
        if right is Right.LOOK and not requester.may_look:
            return None
        if requester.is_admin:
            return job
        if requester.uid is not None:
            return own_part(job, requester.uid)
        space = namespace_of(job)
        if requester.kubernetes is None or self._kubernetes is None or space is None:
            return None
        return job if await self._kubernetes.may(requester.kubernetes, _VERBS[right], space) else None

    async def may_read_page(self, requester: Requester, path: str) -> bool:
        """Whether somebody may read a page that tells of all jobs.

        Raises:
            RefusedError: if Kubernetes would have to say, and does not.
        """
        if requester.is_admin or requester.kubernetes is None or self._kubernetes is None:
            return requester.is_admin
        return await self._kubernetes.may_get(requester.kubernetes, path)
