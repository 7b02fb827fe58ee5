"""What makes a rank slow, by its GPU, its host or its allocator: signs that it has, and that its peers do not have.

Such a sign alone does not say that anybody waits; with it, a rank that comes late has a reason. What all ranks show is no
sign of any of them: a room that is warm, a model that fills the memory.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from pardbg.watchdog.graph.log_facts import LogFacts
from pardbg.watchdog.model.device import DeviceJoin, DeviceSeen
from pardbg.watchdog.model.log_event import AllocatorRetries
from pardbg.watchdog.model.names import Cause, CollectorName
from pardbg.watchdog.store.view import EvidenceView

LOW_CLOCK = LOW_LIMIT = 0.8
"""Of the peers' median: GPUs of one kind differ by a few percent."""
MOST_OF_IT = 0.5
"""The part of a series in which clocks must be held down."""
HEAT = frozenset({"thermal slowdown by software", "thermal slowdown by hardware"})
BRAKE, CAP = "power brake", "power cap"
LEAST_THROTTLED_S = 1.0
"""Of all processors together, between two looks."""
FAR_LESS = 4
"""So many times less must the peers show of what is a sign."""
_WORKING_UTIL = 5  # percent: a GPU that idles has low clocks, too


@dataclass(frozen=True)
class SlowSign:
    """A reason for a rank to be slow, in words that go on from "its"."""

    cause: Cause
    words: str
    source: CollectorName


ON_DEVICE = frozenset({Cause.THERMAL, Cause.POWER})
"""What a rank is slow by because its GPU is."""


def find_slow_signs(view: EvidenceView, logs: LogFacts) -> dict[int, SlowSign]:
    """The strongest sign of each rank that has one. Linear in the ranks."""
    return {**_allocator_signs(view, logs), **_quota_signs(view), **_device_signs(view)}


def _device_signs(view: EvidenceView) -> dict[int, SlowSign]:
    clocks = {
        rank: seen.sm_clock_mhz
        for rank, seen in view.devices.items()
        if seen.sm_clock_mhz and (seen.util or 0) > _WORKING_UTIL and seen.joined_by is not DeviceJoin.LOCAL_RANK
    }
    if len(clocks) < 2:
        return {}
    usual = median(
        sorted(clocks.values(), reverse=True)[: (len(clocks) + 1) // 2]
    )  # of the faster half: two GPUs have no middle
    slow = {rank: clock for rank, clock in clocks.items() if clock <= LOW_CLOCK * usual}
    if 2 * len(slow) > len(clocks):
        return {}
    limits = [limit for rank in clocks if rank not in slow and (limit := view.devices[rank].power_limit_w)]
    signs = {rank: _device_sign(view.devices[rank], usual, median(limits) if limits else 0.0) for rank in slow}
    return {rank: sign for rank, sign in signs.items() if sign is not None}


def _device_sign(seen: DeviceSeen, usual_mhz: float, usual_limit_w: float) -> SlowSign | None:
    """At its power cap is whoever works hard, while those that wait for it are not: only a lower cap is a reason."""
    reasons = set(seen.reasons)
    is_held = (seen.slowed_share or 0.0) >= MOST_OF_IT
    heat = f" at {seen.temperature_c:.0f} C" if seen.temperature_c is not None else ""
    clock = f"GPU runs at {seen.sm_clock_mhz:.0f} MHz where its peers run at {usual_mhz:.0f}"
    if reasons & HEAT and is_held:
        return SlowSign(Cause.THERMAL, f"{clock}{heat} ({', '.join(sorted(reasons & HEAT))})", CollectorName.GPU)
    if BRAKE in reasons and is_held:
        return SlowSign(Cause.POWER, f"{clock} ({BRAKE})", CollectorName.GPU)
    if CAP in reasons and seen.power_limit_w and seen.power_limit_w <= LOW_LIMIT * usual_limit_w:
        limits = f"{CAP} of {seen.power_limit_w:.0f} W, theirs {usual_limit_w:.0f} W"
        return SlowSign(Cause.POWER, f"{clock} ({limits})", CollectorName.GPU)
    return None


def _quota_signs(view: EvidenceView) -> dict[int, SlowSign]:
    waited = dict(_growth({rank: [look.throttled_s for look in looks] for rank, looks in view.looks.items()}))
    return {
        rank: SlowSign(
            Cause.CPU_CONTENTION,
            f"cgroup was kept from running for {seconds:.1f} s between the looks, by its quota of processor time",
            CollectorName.HOST,
        )
        for rank, seconds in _odd(waited, LEAST_THROTTLED_S).items()
    }


def _allocator_signs(view: EvidenceView, logs: LogFacts) -> dict[int, SlowSign]:
    pages = {rank: [beat.retry_count for beat in beats] for rank, beats in view.all_heartbeats.items()}
    counts = dict(_growth(pages)) or _logged_retries(view, logs)
    return {
        rank: SlowSign(
            Cause.ALLOCATOR,
            f"allocator had to free its cache {count:.0f} times meanwhile: the GPU's memory is nearly full",
            CollectorName.HOST if pages else CollectorName.RANK_LOG,
        )
        for rank, count in _odd(counts, 1).items()
    }


def _logged_retries(view: EvidenceView, logs: LogFacts) -> dict[int, float]:
    """How much each rank's count grows in its log; of a rank without a line in any log nothing is known."""
    written = {item.rank for item in view.evidence if item.source is CollectorName.RANK_LOG and item.rank is not None}
    counts: dict[int, list[int]] = {rank: [] for rank in written}
    for fact, event in logs.of_type(AllocatorRetries):
        if fact.rank is not None:
            counts.setdefault(fact.rank, []).append(event.count)
    return {rank: float(max(found) - min(found)) if found else 0.0 for rank, found in counts.items()}


def _growth(series: Mapping[int, list[float | None] | list[int | None]]) -> Iterator[tuple[int, float]]:
    """By how much a counter of each rank has grown, where it was read twice."""
    for rank, values in series.items():
        known = [value for value in values if value is not None]
        if len(known) > 1:
            yield rank, max(0.0, known[-1] - known[0])


def _odd(grown: Mapping[int, float], least: float) -> dict[int, float]:
    """Those of fewer than half of the ranks that have far more than all others."""
    most = max(grown.values(), default=0.0)
    odd = {rank: value for rank, value in grown.items() if value >= max(least, most / FAR_LESS)}
    others = [value for rank, value in grown.items() if rank not in odd]
    is_clear = bool(others) and 2 * len(odd) <= len(grown) and FAR_LESS * max(others) <= min(odd.values(), default=0.0)
    return odd if is_clear else {}
