"""What a series of a GPU means: shapes, how long they have lasted, and what came within the window."""

import time
from itertools import pairwise

import pytest

from pardbg.collectors.gpu.points import GpuPoint, Ring
from pardbg.collectors.gpu.reasons import name_reasons
from pardbg.collectors.gpu.shape import summarise
from pardbg.watchdog.model.device import DeviceSeen, DeviceShape

WORKS = {"util": 98.0, "mem_util": 45.0, "power_w": 640.0, "power_limit_w": 700.0, "sm_clock_mhz": 1755.0}
SPINS = {"util": 100.0, "mem_util": 0.0, "power_w": 130.0, "power_limit_w": 700.0, "sm_clock_mhz": 1980.0}
IDLES = {"util": 0.0, "mem_util": 0.0, "power_w": 72.0, "power_limit_w": 700.0, "sm_clock_mhz": 345.0}


def series(*stretches: tuple[int, dict[str, float]], **all_have: int) -> list[GpuPoint]:
    """A point a second: each stretch so many seconds long."""
    values = [known for seconds, known in stretches for _ in range(seconds)]
    return [GpuPoint(t=1000.0 + number, **(known | all_have)) for number, known in enumerate(values)]  # type: ignore[arg-type]


def shape(*stretches: tuple[int, dict[str, float]], **all_have: int) -> tuple[DeviceShape, float | None]:
    seen = summarise(series(*stretches, **all_have))
    return seen.shape, seen.shape_s


def test_what_a_gpu_does_now_and_since_when() -> None:
    assert shape((60, WORKS), (31, SPINS)) == (DeviceShape.SPINNING, 30.0)
    assert shape((60, WORKS), (31, IDLES)) == (DeviceShape.IDLE, 30.0)
    assert shape((60, SPINS), (31, WORKS)) == (DeviceShape.BUSY, 30.0)
    assert shape((20, SPINS), (1, WORKS), (20, SPINS)) == (DeviceShape.SPINNING, 40.0)  # one odd point is none
    assert shape((1, IDLES)) == (DeviceShape.IDLE, 0.0)
    assert summarise([]) == DeviceSeen()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"power_w": 70, "power_limit_w": 400}, DeviceShape.SPINNING),  # A100
        ({"power_w": 118, "power_limit_w": 400}, DeviceShape.SPINNING),  # H20
        ({"util": 96, "power_w": 18, "power_limit_w": 350}, DeviceShape.SPINNING),  # a kernel that does not end
        ({"power_w": 420}, DeviceShape.BUSY),
        ({"mem_util": 30}, DeviceShape.BUSY),
        ({"util": 60}, DeviceShape.BUSY),
        ({"power_w": 400, "tensor_active": 0.0, "dram_active": 0.01}, DeviceShape.SPINNING),
        ({"tensor_active": 0.3, "dram_active": 0.2}, DeviceShape.BUSY),
        ({"power_w": None}, DeviceShape.UNKNOWN),  # any kernel may be resident
        ({"util": None}, DeviceShape.UNKNOWN),
    ],
)
def test_a_kernel_that_waits_is_told_from_work_by_power_memory_and_activity(
    changes: dict[str, float], expected: DeviceShape
) -> None:
    assert shape((20, SPINS | changes))[0] is expected


def test_power_is_seen_against_what_the_gpu_itself_draws_at_work() -> None:
    spinning_high = SPINS | {"power_w": 450.0, "power_limit_w": 1000.0}
    assert shape((20, spinning_high))[0] is DeviceShape.BUSY
    assert shape((60, WORKS | {"power_w": 984.0, "power_limit_w": 1000.0}), (20, spinning_high))[0] is DeviceShape.SPINNING


def test_a_saw_tooth_is_no_plateau() -> None:
    assert shape(*[(1, WORKS), (1, IDLES)] * 10) == (DeviceShape.VARYING, None)


def test_heat_is_told_and_the_power_cap_alone_is_normal() -> None:
    assert shape((20, WORKS), clock_reasons=0x4)[0] is DeviceShape.BUSY
    hot = summarise(series((10, WORKS), (30, WORKS | {"sm_clock_mhz": 400.0, "temperature_c": 87.0}), clock_reasons=0x24))
    assert (hot.shape, hot.slowed_share, hot.sm_clock_mhz, hot.top_sm_clock_mhz) == (DeviceShape.THROTTLED, 1.0, 400.0, 1755.0)
    assert (hot.reasons, hot.temperature_c) == (("power cap", "thermal slowdown by software"), 87.0)


def test_bits_that_are_newer_than_we_are_keep_their_number() -> None:
    assert name_reasons(0x1 | 0x80000) == ("idle", "0x80000")
    assert name_reasons(0) == ()


def test_only_what_came_within_the_window_is_new() -> None:
    points = series((5, WORKS), ecc_uncorrected=7) + [
        GpuPoint(t=1005.0 + number, ecc_uncorrected=count) for number, count in enumerate((9, 9, 0, 1))
    ]
    seen = summarise(points)
    assert (seen.ecc_uncorrected, seen.new_ecc_uncorrected) == (1, 3)  # two more, and one after a reset
    assert summarise(series((5, WORKS), ecc_uncorrected=7)).new_ecc_uncorrected == 0
    assert summarise(series((5, WORKS))).new_ecc_uncorrected is None


def test_the_ring_keeps_the_newest_and_takes_56_bytes_a_point() -> None:
    ring = Ring(900)
    now_s = time.monotonic()
    for number in range(1000):
        ring.add(now_s - 999 + number, {"util": number % 100, "clock_reasons": 0x24, "power_w": None})
    points = ring.points(since_s=1e6)

    assert ring.size_bytes == 50_400
    assert (len(points), points[-1].util, points[-1].clock_reasons, points[-1].power_w) == (900, 99.0, 0x24, None)
    assert abs(points[-1].t - time.time()) < 5
    assert 59 <= len(ring.points(since_s=60)) <= 61
    assert all(before.t < after.t for before, after in pairwise(points))
