"""One job under an agent's care: its ranks on this node, their signs of life and routing, and what the watch makes of them."""

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from pardbg.collectors.jobs.job_ids import write_job_name
from pardbg.collectors.live.moment import now_rfc3339
from pardbg.collectors.vitals.patient import Patient
from pardbg.collectors.vitals.signs import Signs
from pardbg.watchdog.agent.ward_routing import WardRouting
from pardbg.watchdog.agent.watch import Watch
from pardbg.watchdog.model.incident import Incident
from pardbg.watchdog.model.names import JobSource
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.model.watched import JobState, WatchedJob, WatchedRank
from pardbg.watchdog.model.world import RankProcess, World

_ENDED = "its process has ended, and nobody has looked for a successor yet"


def key_of(world: World) -> str:
    """What tells worlds apart, the same on every node of a job: ``store|size|attempt``."""
    return f"{world.store}|{world.world_size or ''}|{world.attempt or 0}"


@dataclass
class Ward:
    """Close it. ``key`` is `key_of` its world, and more if two worlds of this node have the same.

    ``is_in_hands``: whether it is being asked about or scanned.
    """

    world: World
    watch: Watch
    key: str
    state_since: str = field(default_factory=now_rfc3339)
    is_in_hands: bool = False
    _patients: dict[int, Patient] = field(default_factory=dict)
    _signs: dict[int, Signs] = field(default_factory=dict)
    _routing: WardRouting = field(default_factory=WardRouting)

    def __post_init__(self) -> None:
        """Goes to its ranks."""
        self.meet(self.world)

    def meet(self, world: World) -> None:
        """Takes the world as a census has found it now: ranks may have come, gone, or been started anew."""
        self.world = world
        wanted = {rank.rank: rank for rank in world.ranks}
        for number, patient in list(self._patients.items()):
            if _identity(patient.rank) != _identity(wanted.get(number)):
                self._patients.pop(number).close()
        for number, rank in wanted.items():
            if number not in self._patients:
                with contextlib.suppress(ProcessLookupError):
                    self._patients[number] = Patient(rank)
        self._routing.meet(wanted)

    def look(self, now_s: float) -> bool:
        """One look at all ranks; False if one of them has ended."""
        seen = {number: signs for number, patient in self._patients.items() if (signs := patient.look()) is not None}
        is_whole = len(seen) == len(self.world.ranks)
        self._signs = seen
        with self._noting():
            self.watch.feed(seen, now_s)
        self._routing.look(seen, now_s)
        return is_whole

    def judge(self, report: Report, now_s: float) -> bool:
        """Takes in what a scan has found; whether the job hangs."""
        with self._noting():
            self.watch.judge(report, now_s)
        return self.watch.state is JobState.HUNG

    def resume(self, now_s: float) -> None:
        """An agent before this one has found that the job hangs."""
        with self._noting():
            self.watch.resume(now_s)

    def warn(self, now_s: float) -> None:
        """An agent of other ranks suspects the job."""
        with self._noting():
            self.watch.warn(now_s)

    def follow(self, now_s: float) -> None:
        """Another agent has found that the job hangs."""
        with self._noting():
            self.watch.follow(now_s)

    @contextlib.contextmanager
    def _noting(self) -> Iterator[None]:
        before = self.watch.state
        yield
        if self.watch.state is not before:
            self.state_since = now_rfc3339()

    @property
    def identities(self) -> frozenset[tuple[int, int]]:
        """Pids and start times of its ranks that live, by the last look."""
        return frozenset((rank.pid, rank.started_ticks) for rank in self.world.ranks if rank.rank in self._signs)

    @property
    def youngest_s(self) -> float:
        """When its youngest rank was started, unix time in seconds."""
        ticks = max((rank.started_ticks for rank in self.world.ranks), default=0)
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")

    @property
    def lowest(self) -> int | None:
        """The lowest rank that lives here."""
        return min(self._signs, default=None)

    @property
    def is_all_here(self) -> bool:
        """Whether no other node has a part of the job."""
        size = self.world.world_size
        return size is None or len(self.world.ranks) + len(self.world.ended) >= size

    @property
    def trouble(self) -> str:
        """What of the job cannot be watched, empty if all can."""
        return f"{self.title}: {self._routing.trouble}" if self._routing.trouble else ""

    @property
    def options(self) -> tuple[str, ...]:
        """How `pardbg scan` is told to look at this job on this machine."""
        return ("--pid", str(self.world.ranks[0].pid), "--via", "local")

    @property
    def title(self) -> str:
        """The job's name, as reports have it."""
        return self._named[1]

    @property
    def name(self) -> str:
        """The job as a user would type it; empty if it has no name."""
        return write_job_name(*self.world.job_ids[0], (self.world,)) if self.world.job_ids else ""

    @property
    def _named(self) -> tuple[JobSource, str]:
        return self.world.job_ids[0] if self.world.job_ids else (JobSource.LOCAL, f"pid-{self.world.ranks[0].pid}")

    def describe(self, incident: Incident | None) -> WatchedJob:
        """What the agent shows of it."""
        source, name = self._named
        return WatchedJob(
            job_id=name,
            source=source,
            names=self.world.job_ids,
            world=self.key,
            world_size=self.world.world_size,
            attempt=self.world.attempt,
            uids=tuple(sorted({rank.uid for rank in self.world.ranks})),
            state=self.watch.state,
            state_since=self.state_since,
            ranks=tuple(self._describe_rank(rank) for rank in self.world.ranks),
            incident=incident,
            layers=self._routing.layers,
        )

    def _describe_rank(self, rank: RankProcess) -> WatchedRank:
        signs, quiet = self._signs.get(rank.rank), self.watch.ranks.get(rank.rank)
        routed = self._routing.figures_of(rank.rank)
        return WatchedRank(
            rank=rank.rank,
            local_rank=rank.local_rank,
            pid=rank.pid,
            started_ticks=rank.started_ticks,
            uid=rank.uid,
            state=signs.state if signs else "",
            quiet_s=quiet.quiet_s if quiet else 0.0,
            limit_s=quiet.limit_s(self.watch.limits) if quiet else 0.0,
            step=signs.step if signs else None,
            step_s=signs.step_s if signs else None,
            phase=signs.phase if signs else "",
            problem="" if signs else _ENDED,
            routed_step=routed.step if routed else None,
            assignments=routed.assignments if routed else None,
            drop_ratio=routed.drop_ratio if routed else None,
        )

    def close(self) -> None:
        """Leaves the ranks."""
        for patient in self._patients.values():
            patient.close()
        self._patients = {}
        self._routing.close()


def _identity(rank: RankProcess | None) -> tuple[int, int] | None:
    return (rank.pid, rank.started_ticks) if rank else None
