"""What is said of GPUs: one, and those of all who wait."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timezone

from pardbg.watchdog.correlators.situation import NS_PER_S, Situation
from pardbg.watchdog.correlators.wording import count_ranks
from pardbg.watchdog.graph.device_faults import name_xid
from pardbg.watchdog.model.device import DeviceJoin, DeviceSeen, DeviceShape, XidSeen
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.report import EvidenceLine

_DOES = {
    DeviceShape.IDLE: "idles",
    DeviceShape.SPINNING: "spins in a kernel that computes nothing",
    DeviceShape.BUSY: "works",
    DeviceShape.THROTTLED: "works with its clocks held down",
    DeviceShape.VARYING: "works on and off",
    DeviceShape.LOST: "is lost",
    DeviceShape.UNKNOWN: "does not tell what it does",
}
_MOST_XIDS = 4


def device_line(situation: Situation, rank: int) -> EvidenceLine | None:
    """``GPU 3 (00000000:3B:00.0) idles for 118 s: 0 % busy, 71 of 700 W; Xid 79 ...``; None if it was not seen."""
    seen = situation.view.devices.get(rank)
    if seen is None:
        return None
    if not _is_described(seen):
        return None  # only its errors are known, of which the kernel log speaks
    return situation.view.line(CollectorName.GPU, rank, f"{name_device(seen)} {describe_device(seen)}")


def name_device(seen: DeviceSeen) -> str:
    """``GPU 3 (00000000:3B:00.0)``, or ``the GPU`` in the words of a file that does not name it."""
    if seen.index is None:
        return f"the GPU {seen.pci_bus_id}" if seen.pci_bus_id else "the GPU"
    guess = ", by its local rank" if seen.joined_by is DeviceJoin.LOCAL_RANK else ""
    where = f"{seen.pci_bus_id or seen.uuid or ''}{guess}".removeprefix(", ")
    return f"GPU {seen.index}" + (f" ({where})" if where else "")


def describe_device(seen: DeviceSeen) -> str:
    """``spins in a kernel that computes nothing for 118 s: 100 % busy, memory 0 %, 130 of 700 W``, and what went wrong."""
    lasting = f" for {seen.shape_s:.0f} s" if seen.shape_s is not None and seen.shape_s >= 1 else ""
    problem = f" ({seen.problem})" if seen.problem else ""
    figures = "" if seen.shape is DeviceShape.LOST else ", ".join(_figures(seen))
    return "; ".join([f"{_DOES[seen.shape]}{lasting}{problem}" + (f": {figures}" if figures else ""), *_troubles(seen)])


def peers_line(situation: Situation, ranks: Collection[int]) -> EvidenceLine | None:
    """What the GPUs of those do who wait, most of them first; None if none was seen."""
    seen = [(rank, situation.view.devices[rank]) for rank in ranks if rank in situation.view.devices]
    seen = [(rank, device) for rank, device in seen if _is_described(device)]
    if not seen:
        return None
    counts = Counter(device.shape for _, device in seen)
    told = "; ".join(
        f"of {count_ranks([rank for rank, device in seen if device.shape is shape])} {_DOES[shape]}"
        f"{_power_range(device for _, device in seen if device.shape is shape)}"
        for shape, _ in counts.most_common()
    )
    return situation.view.line(CollectorName.GPU, seen[0][0], f"the GPU {told}")


def _is_described(seen: DeviceSeen) -> bool:
    """Whether anything but errors is known of it."""
    return seen.index is not None or seen.util is not None or seen.shape is not DeviceShape.UNKNOWN


def _figures(seen: DeviceSeen) -> Iterator[str]:
    if seen.util is not None:
        yield f"{seen.util:.0f} % busy"
    if seen.mem_util is not None and seen.util:
        yield f"memory {seen.mem_util:.0f} %"
    if seen.power_w is not None:
        limit = f" of {seen.power_limit_w:.0f}" if seen.power_limit_w else ""
        yield f"{seen.power_w:.0f}{limit} W"
    if seen.shape is DeviceShape.THROTTLED and seen.sm_clock_mhz is not None:
        top = f" of {seen.top_sm_clock_mhz:.0f}" if seen.top_sm_clock_mhz else ""
        heat = f" at {seen.temperature_c:.0f} C" if seen.temperature_c is not None else ""
        yield f"{seen.sm_clock_mhz:.0f}{top} MHz{heat} ({', '.join(seen.reasons)})"


def _troubles(seen: DeviceSeen) -> Iterator[str]:
    newest = seen.xids[-_MOST_XIDS:]
    if newest:
        yield ", ".join(f"{name_xid(xid.code)}{_clock(xid)}" for xid in newest)
    if seen.new_ecc_uncorrected:
        yield f"{seen.new_ecc_uncorrected} memory errors that could not be corrected since it is watched"
    if seen.is_remap_failed:
        yield "a broken row of its memory could not be replaced"
    if seen.down_links:
        yield f"NVLinks {', '.join(map(str, seen.down_links))} are down"
    if seen.new_nvlink_errors:
        yield f"{seen.new_nvlink_errors} NVLink errors since it is watched"


def _power_range(devices: Iterable[DeviceSeen]) -> str:
    watts = sorted(device.power_w for device in devices if device.power_w is not None)
    if not watts:
        return ""
    low, high = f"{watts[0]:.0f}", f"{watts[-1]:.0f}"
    return f" at {low if low == high else f'{low}-{high}'} W"


def _clock(xid: XidSeen) -> str:
    if xid.at_ns is None:
        return ""
    try:
        return f" at {datetime.fromtimestamp(xid.at_ns / NS_PER_S, tz=timezone.utc):%H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):  # a file may hold any number
        return " at a time that none is"
