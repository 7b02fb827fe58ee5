"""What a series says of its GPU: what it does now, for how long, and what it can do. Pure.

Utilisation only says that some kernel is resident. A kernel of NCCL that waits for another rank is, and computes nothing: the
power tells. Absolute power does not carry over from GPU to GPU, so it is seen against the GPU's own limit and its own work.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from statistics import median

from pardbg.collectors.gpu.points import GpuPoint
from pardbg.collectors.gpu.reasons import SLOWED, name_reasons
from pardbg.watchdog.model.device import DeviceSeen, DeviceShape

IDLE_UTIL, FULL_UTIL = 5, 95  # percent
NO_MEM_UTIL = 3  # percent: polling one flag is no traffic
SPIN_OF_LIMIT = 0.4  # 70 of 400 W (A100), 118 of 400 W (H20): a third of the limit, whatever the GPU
SPIN_OF_WORK = 0.6  # of what the GPU itself draws at work
ACTIVE = 0.05  # share of time; below it tensor cores and memory do nothing
LATE_S = 10.0  # what counts as now: long enough for a step to show, short against a hang
LEAST_POINTS = 3
CLEAR_SHARE = 0.8


def summarise(points: Sequence[GpuPoint]) -> DeviceSeen:
    """Sums a series up, oldest point first; whose GPU it is the caller adds."""
    if not points:
        return DeviceSeen()
    busy_w = _power_at_work(points)
    shapes = [_shape_of(point, busy_w) for point in points]
    late = points[-_count_late(points) :]
    shape = _common(shapes[-len(late) :])
    slowed = [bool(point.clock_reasons & SLOWED) for point in points if point.clock_reasons is not None]
    return DeviceSeen(
        shape=shape,
        shape_s=_lasting_s(points, shapes, shape),
        util=_middle(late, lambda point: point.util),
        mem_util=_middle(late, lambda point: point.mem_util),
        power_w=_middle(late, lambda point: point.power_w),
        power_limit_w=_middle(late, lambda point: point.power_limit_w),
        idle_w=min(_values(points, lambda point: point.power_w), default=None),
        busy_w=busy_w,
        sm_clock_mhz=_middle(late, lambda point: point.sm_clock_mhz),
        top_sm_clock_mhz=max(_values(points, lambda point: point.sm_clock_mhz), default=None),
        temperature_c=max(_values(late, lambda point: point.temperature_c), default=None),
        memory_temperature_c=max(_values(late, lambda point: point.memory_temperature_c), default=None),
        reasons=name_reasons(_usual_bits(late)),
        slowed_share=round(sum(slowed) / len(slowed), 3) if slowed else None,
        tensor_active=_middle(late, lambda point: point.tensor_active),
        dram_active=_middle(late, lambda point: point.dram_active),
        window_s=round(points[-1].t - points[0].t, 1),
        ecc_uncorrected=next((point.ecc_uncorrected for point in reversed(points) if point.ecc_uncorrected is not None), None),
        new_ecc_uncorrected=_gained(points, lambda point: point.ecc_uncorrected),
        new_nvlink_errors=_gained(points, lambda point: point.nvlink_errors),
        new_pcie_replays=_gained(points, lambda point: point.pcie_replays),
    )


def _shape_of(point: GpuPoint, busy_w: float | None) -> DeviceShape:
    if point.util is None:
        return DeviceShape.UNKNOWN
    if point.util <= IDLE_UTIL:
        return DeviceShape.IDLE
    does_nothing = _does_nothing(point, busy_w)
    if point.util >= FULL_UTIL and does_nothing:
        return DeviceShape.SPINNING
    if (point.clock_reasons or 0) & SLOWED:
        return DeviceShape.THROTTLED
    return DeviceShape.UNKNOWN if point.util >= FULL_UTIL and does_nothing is None else DeviceShape.BUSY


def _does_nothing(point: GpuPoint, busy_w: float | None) -> bool | None:
    """Whether what is resident computes nothing; None if nothing tells."""
    active = [share for share in (point.tensor_active, point.dram_active) if share is not None]
    if len(active) > 1:
        return max(active) <= ACTIVE
    if active and max(active) > ACTIVE:
        return False
    if point.mem_util is not None and point.mem_util > NO_MEM_UTIL:
        return False
    if point.power_w is None:
        return None
    is_below_work = busy_w is not None and point.power_w < SPIN_OF_WORK * busy_w
    limit_w = point.power_limit_w
    if limit_w:
        return is_below_work or point.power_w < SPIN_OF_LIMIT * limit_w
    return is_below_work if busy_w is not None else None


def _power_at_work(points: Sequence[GpuPoint]) -> float | None:
    """The 90th percentile of the power while memory is busy: NCCL's waiting kernels leave it alone."""
    work = sorted(
        point.power_w
        for point in points
        if point.power_w is not None and (point.util or 0) > FULL_UTIL / 2 and (point.mem_util or 0) > NO_MEM_UTIL
    )
    return work[int(0.9 * (len(work) - 1))] if len(work) >= LEAST_POINTS else None


def _count_late(points: Sequence[GpuPoint]) -> int:
    late = sum(point.t >= points[-1].t - LATE_S for point in points)
    return min(max(late, LEAST_POINTS), len(points))


def _common(shapes: Sequence[DeviceShape]) -> DeviceShape:
    ((shape, count),) = Counter(shapes).most_common(1)
    return shape if count >= CLEAR_SHARE * len(shapes) else DeviceShape.VARYING


def _lasting_s(points: Sequence[GpuPoint], shapes: Sequence[DeviceShape], shape: DeviceShape) -> float | None:
    """Back to the first of the points that all have this shape, but for single ones."""
    if shape is DeviceShape.VARYING:
        return None
    begin = len(points)
    for index in range(len(points) - 1, -1, -1):
        if shapes[index] is shape:
            begin = index
        elif begin - index > 1:
            break
    return round(points[-1].t - points[min(begin, len(points) - 1)].t, 1)


def _usual_bits(points: Sequence[GpuPoint]) -> int:
    """The bits that are set in at least half of the points."""
    known = [point.clock_reasons for point in points if point.clock_reasons is not None]
    counts = Counter(1 << place for bits in known for place in range(bits.bit_length()) if bits >> place & 1)
    return sum(bit for bit, count in counts.items() if 2 * count >= len(known))


def _gained(points: Iterable[GpuPoint], of: Callable[[GpuPoint], int | None]) -> int | None:
    """How much a counter has grown; one that was reset grows from nothing again."""
    counts = [count for point in points if (count := of(point)) is not None]
    return sum(after - before if after >= before else after for before, after in pairwise(counts)) if counts else None


def _middle(points: Iterable[GpuPoint], of: Callable[[GpuPoint], float | None]) -> float | None:
    values = _values(points, of)
    return round(median(values), 3) if values else None


def _values(points: Iterable[GpuPoint], of: Callable[[GpuPoint], float | None]) -> list[float]:
    return [value for point in points if (value := of(point)) is not None and math.isfinite(value)]
