"""Which ranks that have ended were a world together. Pure.

A world is told by its store, its size and its attempt, but plain launchers use one port again and again: what tells two runs
apart is time. Members of a process group have waited for each other, so all of them were alive at one moment.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from pardbg.collectors.ended.requests import LeftFolder
from pardbg.collectors.jobs.identity import Identity, WorldKey, identify
from pardbg.collectors.jobs.job_ids import JobIds, find_job_ids
from pardbg.collectors.jobs.process import JobProcess, ProcessLook
from pardbg.collectors.live.start_time import started_ns
from pardbg.collectors.parsing.rank_file import RankFile
from pardbg.collectors.procfs.stat import ProcessStat
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.heartbeat import Heartbeat
from pardbg.watchdog.model.recording import GroupConfig
from pardbg.watchdog.model.world import EndedProcess, World

_ONE_LAUNCH_NS = 60 * 10**9  # ranks of one launch start within this time: imports from a cold disk are slow


class EndedRank(Noun, frozen=True, kw_only=True):
    """A rank whose process is gone, by what its probe has left.

    Attributes:
        own: what the probe said of the process.
        started_ns: when the process started, epoch ns.
        seen_ns: the last moment at which it is known to have lived, epoch ns.
    """

    folder: LeftFolder
    own: RankFile
    identity: Identity
    started_ns: int
    seen_ns: int
    heartbeat: Heartbeat | None = None
    groups: tuple[GroupConfig, ...] = ()

    @property
    def rank(self) -> int:
        """Its global rank."""
        return self.identity.rank

    @property
    def is_member(self) -> bool:
        """Whether it had joined a process group: children of ranks inherit their numbers and do not."""
        return bool(self.own.is_member)

    @property
    def process(self) -> JobProcess:
        """Its process in the terms of the census, for who reads names of jobs from environments."""
        return _as_process(self.folder, self.own)


class Run(Noun, frozen=True, kw_only=True):
    """The ranks of one world that have ended on this machine, by rank."""

    key: WorldKey
    uid: int
    ranks: tuple[EndedRank, ...]

    @property
    def started_ns(self) -> int:
        """When the last of them started."""
        return max(rank.started_ns for rank in self.ranks)

    @property
    def ended_ns(self) -> int:
        """The last moment that any of them is known to have seen."""
        return max(rank.seen_ns for rank in self.ranks)

    @property
    def job_ids(self) -> JobIds:
        """Its names."""
        return find_job_ids([rank.process for rank in self.ranks], [])

    @property
    def world(self) -> World:
        """The same as jobs that live are described."""
        return World(
            job_ids=self.job_ids,
            store=self.key.store,
            world_size=self.key.world_size,
            attempt=self.key.attempt,
            ranks=(),
            ended=tuple(
                EndedProcess(rank=rank.rank, pid=rank.folder.pid, exit_code=rank.folder.exit_code) for rank in self.ranks
            ),
        )


def describe_ended(
    folder: LeftFolder, own: RankFile, heartbeat: Heartbeat | None, groups: tuple[GroupConfig, ...]
) -> EndedRank | None:
    """A rank, None if what it has left does not say which one."""
    identity = identify(_as_process(folder, own))
    if identity is None:
        return None
    key = replace(
        identity.key,
        world_size=identity.key.world_size if own.world_size is None else own.world_size,
        attempt=identity.key.attempt if own.attempt is None else own.attempt,
        apart="" if identity.key.address else identity.key.apart,
    )
    own_rank = identity.rank if own.rank is None else own.rank
    local_rank = identity.local_rank if own.local_rank is None else own.local_rank
    return EndedRank(
        folder=folder,
        own=own,
        identity=replace(identity, key=key, rank=own_rank, local_rank=local_rank),
        started_ns=started_ns(folder.started_ticks),
        seen_ns=max(folder.touched_ns, *_moments(heartbeat)),
        heartbeat=heartbeat,
        groups=groups,
    )


def _moments(heartbeat: Heartbeat | None) -> tuple[int, ...]:
    if heartbeat is None:
        return (0,)
    ended_ns = heartbeat.ending.at_ns if heartbeat.ending else None
    return tuple(time_ns or 0 for time_ns in (heartbeat.step_ended_ns, heartbeat.phase_since_ns, ended_ns))


def _as_process(folder: LeftFolder, own: RankFile) -> JobProcess:
    stat = ProcessStat(
        pid=folder.pid,
        name="python",
        state="X",
        parent_pid=0,
        cpu_ticks=0,
        started_ticks=folder.started_ticks,
        wait_status=0,
    )
    look = ProcessLook(
        pid=folder.pid,
        started_ticks=folder.started_ticks,
        uid=folder.uid,
        environment=own.environment or {},
        is_python=True,
        maps_torch=True,
    )
    return JobProcess(stat=stat, look=look)


def find_runs(ended: Iterable[EndedRank]) -> list[Run]:
    """All runs, the oldest first."""
    by_key: dict[tuple[WorldKey, int], list[EndedRank]] = {}
    for rank in ended:
        by_key.setdefault((rank.identity.key, rank.folder.uid), []).append(rank)
    runs = [
        Run(key=key, uid=uid, ranks=tuple(sorted(ranks.values(), key=lambda rank: rank.rank)))
        for (key, uid), found in by_key.items()
        for ranks in _split(found)
    ]
    return sorted(runs, key=lambda run: run.started_ns)


def _split(found: Sequence[EndedRank]) -> list[dict[int, EndedRank]]:
    """The runs of one key. Who is no member of a group only stands in for a rank of which no member is left."""
    found = sorted(found, key=lambda rank: (rank.folder.started_ticks, rank.folder.pid))  # exact, which epoch times are not
    runs: list[dict[int, EndedRank]] = []
    for rank in (rank for rank in found if rank.is_member):
        newest = runs[-1] if runs else {}
        is_later = any(rank.started_ns > other.seen_ns for other in newest.values())
        if not newest or rank.rank in newest or is_later:
            runs.append({})
        runs[-1][rank.rank] = rank
    others = [rank for rank in found if not rank.is_member]
    spans = [(min(r.started_ns for r in run.values()), max(r.seen_ns for r in run.values())) for run in runs]
    loose: list[EndedRank] = []
    for rank in others:  # the oldest first, so that the youngest stays
        near = [n for n, (start, end) in enumerate(spans) if start - _ONE_LAUNCH_NS <= rank.started_ns <= end]
        members = {member.rank for member in runs[near[-1]].values() if member.is_member} if near else set()
        if not near:
            loose.append(rank)
        elif rank.rank not in members:
            runs[near[-1]][rank.rank] = rank
    return [*_split_loose(loose), *runs]


def _split_loose(loose: Sequence[EndedRank]) -> list[dict[int, EndedRank]]:
    """Runs that ended before anybody had joined a group: those that started within one launch, of each rank the youngest."""
    runs: list[dict[int, EndedRank]] = []
    start_ns = 0
    for rank in loose:
        if not runs or rank.started_ns - start_ns > _ONE_LAUNCH_NS:
            runs.append({})
            start_ns = rank.started_ns
        runs[-1][rank.rank] = rank
    return runs
