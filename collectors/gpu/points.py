"""The series of a GPU: points in time, as the files of the contract hold them, and the ring that keeps the newest of them.

Memory: 56 bytes a point, so 15 minutes at one a second take 50,400 bytes a GPU.
"""

import math
import time
from array import array
from collections.abc import Iterator

from pardbg.watchdog.model.base import Noun

KEPT_S = 900.0
COLUMNS = (
    "util",
    "mem_util",
    "power_w",
    "power_limit_w",
    "sm_clock_mhz",
    "memory_clock_mhz",
    "temperature_c",
    "memory_temperature_c",
    "clock_reasons",
    "ecc_uncorrected",
    "nvlink_errors",
    "pcie_replays",
)
_UNKNOWN = math.nan


class GpuPoint(Noun, frozen=True, kw_only=True, omit_defaults=True):
    """One moment: ``t`` in seconds (unix), percent, watts, MHz, degrees; counters since the driver was loaded.

    ``tensor_active`` and ``dram_active`` (0-1) come from files of other tools only. None: not known.
    """

    t: float
    util: float | None = None
    mem_util: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    temperature_c: float | None = None
    memory_temperature_c: float | None = None
    clock_reasons: int | None = None
    ecc_uncorrected: int | None = None
    nvlink_errors: int | None = None
    pcie_replays: int | None = None
    tensor_active: float | None = None
    dram_active: float | None = None


class Ring:
    """The newest points of one GPU, by the monotonic clock, so that a step of the wall clock tears no hole into it."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._count = 0
        self._at_s = array("d", bytes(8 * capacity))
        self._columns = {name: array("f", bytes(4 * capacity)) for name in COLUMNS}

    @property
    def size_bytes(self) -> int:
        """What the arrays take."""
        return sum(len(column) * column.itemsize for column in (self._at_s, *self._columns.values()))

    def add(self, at_s: float, values: dict[str, float | None]) -> None:
        """Keeps one point; what is missing is unknown."""
        place = self._count % self._capacity
        self._at_s[place] = at_s
        for name, column in self._columns.items():
            value = values.get(name)
            column[place] = _UNKNOWN if value is None else value
        self._count += 1

    def points(self, since_s: float = KEPT_S) -> tuple[GpuPoint, ...]:
        """Those of the last ``since_s`` seconds, oldest first."""
        return tuple(self._points(time.monotonic() - since_s))

    def _points(self, from_s: float) -> Iterator[GpuPoint]:
        offset_s = time.time() - time.monotonic()
        for number in range(max(0, self._count - self._capacity), self._count):
            place = number % self._capacity
            at_s = self._at_s[place]
            if at_s >= from_s:
                values = {name: _known(name, column[place]) for name, column in self._columns.items()}
                yield GpuPoint(t=round(at_s + offset_s, 3), **values)  # type: ignore[arg-type]  # the columns are its fields


_WHOLE = frozenset({"clock_reasons", "ecc_uncorrected", "nvlink_errors", "pcie_replays"})


def _known(name: str, value: float) -> float | None:
    if math.isnan(value):
        return None
    return int(value) if name in _WHOLE else round(value, 3)
