"""What an agent knows of the jobs on its node at one moment: what its page of metrics and its API show."""

from enum import Enum

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.incident import Incident
from pardbg.watchdog.model.names import JobSource
from pardbg.watchdog.model.watched_layer import WatchedLayer


class JobState(str, Enum):
    """What the watchdog makes of a job. ``suspect``: a rank is silent for too long; ``hung``: a scan has found a fault."""

    HEALTHY = "healthy"
    SUSPECT = "suspect"
    HUNG = "hung"
    RECOVERED = "recovered"


class WatchedRank(Noun, frozen=True, kw_only=True):
    """One rank on this node. None: not known.

    Attributes:
        state: as in ``/proc/PID/stat``.
        quiet_s: for how long it has shown no sign of life, seconds; ``limit_s``: for how long it may.
        step: optimizer steps finished, if its probe says; ``step_s`` how long the last one took, seconds.
        phase: what it does beside training steps (`Heartbeat.phase`).
        problem: why its signs of life cannot be seen, empty if they are.
        routed_step: the newest step of which its MoE routing is known, with the ``assignments`` of its tokens to experts in all
            layers, and the share of them that was dropped.
    """

    rank: int
    local_rank: int | None = None
    pid: int
    started_ticks: int
    uid: int
    state: str = ""
    quiet_s: float = 0.0
    limit_s: float = 0.0
    step: int | None = None
    step_s: float | None = None
    phase: str = ""
    problem: str = ""
    routed_step: int | None = None
    assignments: int | None = None
    drop_ratio: float | None = None


class WatchedJob(Noun, frozen=True, kw_only=True):
    """One world of this node.

    Attributes:
        world: ``store|size|attempt``, the same on all nodes of the job.
        names: all names it answers to; ``job_id`` is the first of them.
        uids: the users its processes run as.
        state_since: RFC 3339.
        incident: the one that is open, if this agent leads it.
        layers: its MoE layers, over the ranks of this node whose probes count routing.
    """

    job_id: str
    source: JobSource
    names: tuple[tuple[JobSource, str], ...] = ()
    world: str
    world_size: int | None
    attempt: int | None
    uids: tuple[int, ...]
    state: JobState = JobState.HEALTHY
    state_since: str
    ranks: tuple[WatchedRank, ...]
    incident: Incident | None = None
    layers: tuple[WatchedLayer, ...] = ()

    @property
    def is_blind(self) -> bool:
        """Whether of no rank a sign of life can be seen."""
        return all(rank.problem for rank in self.ranks)


class AgentSnapshot(Noun, frozen=True, kw_only=True):
    """Everything an agent shows.

    Attributes:
        taken_at: RFC 3339.
        problems: what the agent itself suffers from, in words by a short name: ``store``, ``census``, ``routing``, ...
        counts: what it has done since it started: ``scans``, ``looks``, ``refusals``, ``notifications``, ``retries``, ...
        unsent: notifications that wait for their receiver.
    """

    host: str
    version: str
    taken_at: str
    jobs: tuple[WatchedJob, ...] = ()
    problems: dict[str, str] = {}
    counts: dict[str, int] = {}
    unsent: int = 0
