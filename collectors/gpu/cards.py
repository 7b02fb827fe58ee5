"""All GPUs of this machine as far as NVML's child has told of them. Fed with messages; reads nothing itself.

Memory: a ring (`points.py`) and about 2 KB a GPU; the newest `_MOST_XIDS` errors.
"""

import time
from collections import deque
from collections.abc import Collection

from msgspec.structs import replace

from pardbg.collectors.gpu.messages import CardFound, CardLost, Condition, Opened, Reading, Xid
from pardbg.collectors.gpu.points import KEPT_S, GpuPoint, Ring
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.device import XidSeen

_MOST_XIDS = 256
_LEAST_PERIOD_S = 1.0  # a short look samples faster, and needs no 15 minutes


class CardSample(Noun, frozen=True, kw_only=True):
    """One GPU as it was last seen: percent, watts, MHz, degrees; ``at_ns`` epoch ns, None if it never answered.

    Attributes:
        pids: who uses it, in the pid namespace that the driver answers in; None if that is not told.
        was_up: the NVLinks that have been up at any time while we looked; ``condition.up_links`` are up now.
        is_lost: whether NVML says that it is lost or needs a reset; ``is_silent``: it does not answer at all.
        problem: why, in NVML's words or ours.
    """

    index: int
    uuid: str | None = None
    pci_bus_id: str | None = None
    name: str | None = None
    at_ns: int | None = None
    util: int | None = None
    mem_util: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_clock_mhz: int | None = None
    clock_reasons: int | None = None
    temperature_c: int | None = None
    condition: Condition = Condition()
    was_up: tuple[int, ...] = ()
    is_lost: bool = False
    is_silent: bool = False
    problem: str = ""

    @property
    def key(self) -> str:
        """What identifies it: its UUID, else its number."""
        return self.uuid or f"#{self.index}"

    @property
    def down_links(self) -> tuple[int, ...]:
        """The NVLinks that were up and are not."""
        return tuple(sorted({*self.was_up} - {*self.condition.up_links}))


class Cards:
    """What is known. Of a GPU that is lost the UUID and the processes stay known."""

    def __init__(self, period_s: float) -> None:
        self._capacity = round(KEPT_S / max(period_s, _LEAST_PERIOD_S))
        self._samples: dict[int, CardSample] = {}
        self._rings: dict[str, Ring] = {}
        self._xids: deque[tuple[str, XidSeen]] = deque(maxlen=_MOST_XIDS)

    @property
    def samples(self) -> tuple[CardSample, ...]:
        """The newest of each GPU, by index."""
        return tuple(self._samples[index] for index in sorted(self._samples))

    @property
    def xids(self) -> tuple[tuple[str, XidSeen], ...]:
        """What the driver has reported, with the GPU's key, oldest first."""
        return tuple(self._xids)

    def series(self, key: str, since_s: float) -> tuple[GpuPoint, ...]:
        """The points of a GPU, oldest first."""
        ring = self._rings.get(key)
        return ring.points(since_s) if ring is not None else ()

    def open(self, opened: Opened, silent: Collection[int]) -> None:
        """Takes the list of a child that has just begun. ``silent`` it was told to leave alone."""
        self._samples = {card.index: self._found(card, is_silent=card.index in silent) for card in opened.cards}

    def take(self, message: Reading | CardLost | Xid) -> None:
        """Takes what a child says of one GPU."""
        known = self._samples.get(message.index, CardSample(index=message.index))
        if isinstance(message, Xid):
            self._xids.append((known.key, XidSeen(code=message.code, at_ns=message.at_ns)))
        elif isinstance(message, CardLost):
            self._samples[message.index] = replace(_blank(known), is_lost=True, problem=message.words)
        else:
            self._read(known, message)

    def silence(self, index: int, why: str) -> None:
        """Notes that a GPU does not answer."""
        known = self._samples.get(index, CardSample(index=index))
        self._samples[index] = replace(_blank(known), is_silent=True, problem=why)

    def _found(self, card: CardFound, *, is_silent: bool) -> CardSample:
        known = self._samples.get(card.index)
        if known is not None and card.uuid in {known.uuid, None}:
            problem = known.problem if is_silent else card.problem
            return replace(known, is_lost=card.is_lost, is_silent=is_silent, problem=problem)
        return CardSample(
            index=card.index,
            uuid=card.uuid,
            pci_bus_id=card.pci_bus_id,
            name=card.name,
            is_lost=card.is_lost,
            is_silent=is_silent,
            problem=card.problem,
        )

    def _read(self, known: CardSample, reading: Reading) -> None:
        condition = reading.condition or known.condition
        sample = replace(
            known,
            at_ns=time.time_ns() - (time.monotonic_ns() - reading.at_ns),
            util=reading.util,
            mem_util=reading.mem_util,
            power_w=_watts(reading.power_mw),
            power_limit_w=_watts(condition.power_limit_mw),
            sm_clock_mhz=reading.sm_clock_mhz,
            clock_reasons=reading.clock_reasons,
            temperature_c=reading.temperature_c,
            condition=condition,
            was_up=tuple(sorted({*known.was_up, *condition.up_links})),
            is_lost=False,
            is_silent=False,
            problem="",
        )
        self._samples[reading.index] = sample
        ring = self._rings.setdefault(sample.key, Ring(self._capacity))
        ring.add(reading.at_ns / 1e9, _columns(sample))


def _blank(sample: CardSample) -> CardSample:
    """What still holds of a GPU that says nothing any more."""
    kept = {name: getattr(sample, name) for name in ("index", "uuid", "pci_bus_id", "name", "at_ns", "condition", "was_up")}
    return CardSample(**kept)


def _columns(sample: CardSample) -> dict[str, float | None]:
    condition = sample.condition
    return {
        "util": sample.util,
        "mem_util": sample.mem_util,
        "power_w": sample.power_w,
        "power_limit_w": sample.power_limit_w,
        "sm_clock_mhz": sample.sm_clock_mhz,
        "memory_clock_mhz": condition.memory_clock_mhz,
        "temperature_c": sample.temperature_c,
        "memory_temperature_c": condition.memory_temperature_c,
        "clock_reasons": sample.clock_reasons,
        "ecc_uncorrected": condition.ecc_uncorrected,
        "nvlink_errors": condition.nvlink_errors,
        "pcie_replays": condition.pcie_replays,
    }


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000
