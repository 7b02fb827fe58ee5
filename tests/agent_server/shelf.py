"""An agent for the server's tests: it holds what it is given, and counts what it is told."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pardbg.watchdog.agent.server.held import Series
from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.names import CollectorName, JobSource
from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.model.wanted import Cut, Wanted
from pardbg.watchdog.model.watched import AgentSnapshot, WatchedJob, WatchedRank
from pardbg.watchdog.model.watched_layer import WatchedLayer

OURS, THEIRS = 65534, 4242


def job(name: str, *uids: int, names: tuple[tuple[JobSource, str], ...] | None = None, pid: int = 100) -> WatchedJob:
    """A job with a rank of each of these users, and an MoE layer."""
    return WatchedJob(
        job_id=name,
        source=JobSource.RUN,
        names=names if names is not None else ((JobSource.RUN, name),),
        world=f"10.0.0.1:29500|{len(uids)}|{name}",
        world_size=len(uids),
        attempt=0,
        uids=tuple(sorted(set(uids))),
        state_since="2026-11-30T00:00:00Z",
        ranks=tuple(WatchedRank(rank=rank, pid=pid + rank, started_ticks=1, uid=uid) for rank, uid in enumerate(uids)),
        layers=(WatchedLayer(layer=3, step=7),),
    )


JOBS = (job("ours", OURS, OURS), job("theirs", THEIRS, pid=200), job("mixed", OURS, THEIRS, pid=300))


@dataclass
class Shelf:
    """See `Held`."""

    jobs: tuple[WatchedJob, ...] = JOBS
    counts: Counter[str] = field(default_factory=Counter)
    suspected: list[str] = field(default_factory=list)
    seen_devices: tuple[Evidence, ...] = ()
    problems: dict[str, str] = field(default_factory=dict)

    def snapshot(self) -> AgentSnapshot:
        """See `Held`."""
        return AgentSnapshot(host="n1", version="0", taken_at="2026-11-30T00:00:00Z", jobs=self.jobs, problems=self.problems)

    def metrics_text(self, accept: str) -> tuple[bytes, str]:
        """See `Held`."""
        del accept
        return b"# TYPE pardbg_up gauge\npardbg_up 1\n", "text/plain"

    @property
    def has_devices(self) -> bool:
        """See `Held`."""
        return bool(self.seen_devices)

    def devices(self, job: WatchedJob, sample: int) -> Sequence[Evidence]:
        """See `Held`."""
        del sample
        return [item for item in self.seen_devices if item.rank in {rank.rank for rank in job.ranks}]

    def digest(self, job: WatchedJob) -> Sequence[Evidence]:
        """See `Held`."""
        del job  # more than is asked for: the server must not give it on
        return [
            Evidence(
                source=CollectorName.HOST,
                rank=rank,
                observation=ProcessSample(pid=rank, started_ticks=1, state="S"),
                origin="/proc",
            )
            for rank in (0, 1)
        ]

    def entries(self, job: WatchedJob, wanted: Sequence[Wanted]) -> Sequence[Cut]:
        """See `Held`."""
        del job, wanted
        return ()

    def series(self, job: WatchedJob, rank: int | None) -> Sequence[Series]:
        """See `Held`."""
        del job, rank
        return [Series(name="quiet", unit="s", rank=one, points=((1.0, 2.0),)) for one in (0, 1)]

    def suspect(self, world: str) -> None:
        """See `Held`."""
        self.suspected.append(world)

    def count(self, name: str) -> None:
        """See `Held`."""
        self.counts[name] += 1
