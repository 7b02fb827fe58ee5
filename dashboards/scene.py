"""What there is to show at one moment, flat: agents, jobs, ranks, incidents, GPUs, each with what names it."""

from dataclasses import dataclass
from typing import NamedTuple

from pardbg.watchdog.model.incident import Incident
from pardbg.watchdog.model.watched import AgentSnapshot, WatchedJob, WatchedRank
from pardbg.watchdog.model.watched_layer import WatchedLayer


class JobShown(NamedTuple):
    """One world, as far as it is on this host."""

    host: str
    job: WatchedJob


class RankShown(NamedTuple):
    """One rank."""

    host: str
    job: WatchedJob
    rank: WatchedRank


class IncidentShown(NamedTuple):
    """One open incident. ``culprit`` names whom it blames, in words; empty if nobody."""

    host: str
    job: WatchedJob
    incident: Incident
    culprit: str


class LayerShown(NamedTuple):
    """One MoE layer, over the ranks of its job on this host."""

    host: str
    job: WatchedJob
    layer: WatchedLayer


class EpRankShown(NamedTuple):
    """One place in the expert-parallel groups of a job: its load in relation to the mean of all places, all layers together."""

    host: str
    job: WatchedJob
    ep_rank: int
    load_ratio: float


@dataclass(frozen=True, kw_only=True)
class CardShown:
    """One GPU, in base units; None: not known.

    Attributes:
        gpu: its index on the host.
        job_id: the job of the rank that uses it, with its ``world`` and ``rank``; empty if nobody does, or it is not known who.
        memory_ratio: share of time (0-1) in which its memory was read or written.
        clock_reasons: what holds its clocks down now.
        last_xid: the code of the last error that the driver has reported of it.
        down_links: NVLinks that were up and are not.
        is_lost: the driver says so; ``is_silent``: the driver hangs when it is asked.
    """

    host: str
    gpu: str
    uuid: str
    job_id: str = ""
    world: str = ""
    rank: str = ""
    utilization_ratio: float | None = None
    memory_ratio: float | None = None
    memory_used_bytes: float | None = None
    memory_total_bytes: float | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    sm_clock_hertz: float | None = None
    memory_clock_hertz: float | None = None
    temperature_celsius: float | None = None
    memory_temperature_celsius: float | None = None
    clock_reasons: tuple[str, ...] = ()
    pcie_replays: int | None = None
    nvlink_errors: int | None = None
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None
    last_xid: int | None = None
    down_links: int = 0
    is_lost: bool = False
    is_silent: bool = False


@dataclass(frozen=True)
class Scene:
    """Everything that one agent's metrics tell."""

    agents: tuple[AgentSnapshot, ...] = ()
    jobs: tuple[JobShown, ...] = ()
    ranks: tuple[RankShown, ...] = ()
    incidents: tuple[IncidentShown, ...] = ()
    cards: tuple[CardShown, ...] = ()
    layers: tuple[LayerShown, ...] = ()
    ep_ranks: tuple[EpRankShown, ...] = ()
