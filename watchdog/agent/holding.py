"""What an agent holds, for its server: the newest snapshot, the last quarter of an hour, the page of metrics.

Rings it holds none: it reads none while nothing is wrong; those of a hang are with the incident's evidence.
"""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from pardbg.collectors.gpu.evidence import describe_devices
from pardbg.collectors.gpu.gpus import Gpus
from pardbg.watchdog.agent.agent import Agent
from pardbg.watchdog.agent.history import KEPT_S, History
from pardbg.watchdog.agent.metrics import metrics_text
from pardbg.watchdog.agent.server.held import Series
from pardbg.watchdog.agent.shown_cards import processes_of, show_cards
from pardbg.watchdog.model.device import DeviceSeen
from pardbg.watchdog.model.evidence import Evidence, Observation
from pardbg.watchdog.model.heartbeat import Heartbeat
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.model.wanted import Cut, Wanted
from pardbg.watchdog.model.watched import AgentSnapshot, WatchedJob, WatchedRank


class Holding:
    """See `Held`. Any thread may call it."""

    def __init__(self, agent: Agent, history: History, gpus: Gpus | None = None) -> None:
        self._agent, self._history, self._gpus = agent, history, gpus
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter({"looks": 0, "refusals": 0})

    def snapshot(self) -> AgentSnapshot:
        """See `Held`."""
        newest = self._agent.snapshot
        absence = self._gpus.absence() if self._gpus is not None else None
        problems = {"gpu": absence.detail} if absence is not None and absence.reason is not AbsenceReason.NOT_INSTALLED else {}
        with self._lock:
            return replace(newest, counts={**newest.counts, **self._counts}, problems={**newest.problems, **problems})

    def metrics_text(self, accept: str) -> tuple[bytes, str]:
        """See `Held`."""
        snapshot = self.snapshot()
        cards = show_cards(snapshot, self._gpus.latest(), self._gpus.events()) if self._gpus is not None else ()
        return metrics_text(snapshot, cards, accept)

    def digest(self, job: WatchedJob) -> Sequence[Evidence]:
        """See `Held`: the signs of life of every rank, as a scan would see them, and its GPU."""
        snapshot = self._agent.snapshot
        signs = [
            Evidence(
                source=CollectorName.HOST,
                rank=rank.rank,
                host=snapshot.host,
                observed_at=snapshot.taken_at,
                observation=seen,
                origin=f"/proc/{rank.pid}",
            )
            for rank in job.ranks
            for seen in _observations(rank)
        ]
        return [*signs, *(item for item in self.devices(job, 0) if isinstance(item.observation, DeviceSeen))]

    @property
    def has_devices(self) -> bool:
        """See `Held`."""
        return self._gpus is not None and bool(self._gpus.latest())

    def devices(self, job: WatchedJob, sample: int) -> Sequence[Evidence]:
        """See `Held`."""
        if self._gpus is None:
            return ()
        return describe_devices(self._gpus, processes_of(job, self._agent.snapshot.host), sample, KEPT_S)

    def entries(self, job: WatchedJob, wanted: Sequence[Wanted]) -> Sequence[Cut]:  # noqa: ARG002 - see the module
        """See `Held`."""
        return ()

    def series(self, job: WatchedJob, rank: int | None) -> Sequence[Series]:
        """See `Held`."""
        return [
            Series(name=name, unit=unit, rank=known.rank, points=points)
            for known in job.ranks
            if rank in {None, known.rank}
            for moments in (self._history.of(known),)
            for name, unit, points in (
                ("quiet", "s", tuple((moment.at_s, moment.quiet_s) for moment in moments)),
                ("steps", "", tuple((moment.at_s, float(moment.steps)) for moment in moments if moment.steps is not None)),
                ("step", "s", tuple((moment.at_s, moment.step_s) for moment in moments if moment.step_s is not None)),
            )
            if points
        ]

    def suspect(self, world: str) -> None:
        """See `Held`."""
        self._agent.warn(world)

    def count(self, name: str) -> None:
        """See `Held`."""
        with self._lock:
            self._counts[name] += 1


def _observations(rank: WatchedRank) -> Iterator[Observation]:
    if rank.state:
        yield ProcessSample(pid=rank.pid, started_ticks=rank.started_ticks, state=rank.state, still_s=rank.quiet_s)
    if rank.step is not None:
        yield Heartbeat(step=rank.step, step_s=rank.step_s, phase=rank.phase)
