"""GPUs as the page of metrics shows them: in base units, each with the rank that uses it. Pure.

Where the driver tells no processes, the rank is a guess by its local rank (`collectors/gpu/joining.py`): good enough to look
at, and nobody is accused on it.
"""

from collections.abc import Iterable, Sequence

from pardbg.collectors.gpu.cards import CardSample
from pardbg.collectors.gpu.joining import join
from pardbg.collectors.gpu.reasons import name_reasons
from pardbg.dashboards.scene import CardShown
from pardbg.watchdog.model.device import XidSeen
from pardbg.watchdog.model.ranks import fold_briefly
from pardbg.watchdog.model.watched import AgentSnapshot, WatchedJob
from pardbg.watchdog.model.world import RankProcess

_MEGA = 1e6


def show_cards(
    snapshot: AgentSnapshot, samples: Sequence[CardSample], xids: Iterable[tuple[str, XidSeen]] = ()
) -> tuple[CardShown, ...]:
    """What `Gpus.latest` and `Gpus.events` say, joined to the ranks of this host."""
    last = {key: xid.code for key, xid in xids}
    users = _users(snapshot, samples)
    return tuple(_show(snapshot.host, sample, users.get(sample.index), last.get(sample.key)) for sample in samples)


def _users(snapshot: AgentSnapshot, samples: Sequence[CardSample]) -> dict[int, tuple[WatchedJob, str]]:
    """The job and the ranks on each GPU, by its index; several ranks may share one."""
    users: dict[int, tuple[WatchedJob, str]] = {}
    for job in snapshot.jobs:
        on: dict[int, list[int]] = {}
        for rank, (sample, _) in join(processes_of(job, snapshot.host), samples).items():
            on.setdefault(sample.index, []).append(rank)
        for index, ranks in on.items():
            users.setdefault(index, (job, fold_briefly(ranks)))
    return users


def processes_of(job: WatchedJob, host: str) -> list[RankProcess]:
    """The ranks of a job as collectors know them."""
    return [
        RankProcess(rank=rank.rank, pid=rank.pid, started_ticks=rank.started_ticks, host=host, local_rank=rank.local_rank)
        for rank in job.ranks
    ]


def _show(host: str, sample: CardSample, user: tuple[WatchedJob, str] | None, last_xid: int | None) -> CardShown:
    condition = sample.condition
    job, rank = user or (None, "")
    return CardShown(
        host=host,
        gpu=str(sample.index),
        uuid=sample.uuid or "",
        job_id=job.job_id if job else "",
        world=job.world if job else "",
        rank=rank,
        utilization_ratio=_times(sample.util, 0.01),
        memory_ratio=_times(sample.mem_util, 0.01),
        memory_used_bytes=condition.used_bytes,
        memory_total_bytes=condition.total_bytes,
        power_watts=sample.power_w,
        power_limit_watts=sample.power_limit_w,
        sm_clock_hertz=_times(sample.sm_clock_mhz, _MEGA),
        memory_clock_hertz=_times(condition.memory_clock_mhz, _MEGA),
        temperature_celsius=sample.temperature_c,
        memory_temperature_celsius=condition.memory_temperature_c,
        clock_reasons=name_reasons(sample.clock_reasons or 0),
        pcie_replays=condition.pcie_replays,
        nvlink_errors=condition.nvlink_errors,
        ecc_corrected=condition.ecc_corrected,
        ecc_uncorrected=condition.ecc_uncorrected,
        last_xid=last_xid,
        down_links=len(sample.down_links),
        is_lost=sample.is_lost,
        is_silent=sample.is_silent,
    )


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
