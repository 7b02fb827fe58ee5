"""Whose GPU explains that others wait: by an error that the driver reports, or as the odd one among GPUs that should do alike.

In a collective of NCCL all GPUs spin: fully used, at little power. One that idles there was never given the kernel; one that
works is still at something else. The level says little, the difference much; so nobody is accused where most differ, where
some were not seen, or where it is a guess which GPU is whose.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pardbg.watchdog.graph.device_faults import LINK_ORIGINS, SEVERITY, fault_of
from pardbg.watchdog.graph.meetings import Meeting
from pardbg.watchdog.graph.standing import Stance, Standing
from pardbg.watchdog.graph.waits import Node, WaitGraph
from pardbg.watchdog.model.device import DeviceJoin, DeviceShape, XidSeen
from pardbg.watchdog.model.names import Cause
from pardbg.watchdog.positions.position import Place
from pardbg.watchdog.store.view import EvidenceView

AT_WORK = frozenset({DeviceShape.BUSY, DeviceShape.THROTTLED})
ITS_OWN = frozenset({Cause.GPU_LOST, Cause.ECC})
"""Errors that no other rank brings about."""
RESIDENT = AT_WORK | {DeviceShape.SPINNING}
BEFORE_S = 120.0  # by which an error may lie before the waiting: the watchdogs of the others may have run on

Ages = Callable[[int], float | None]
Waits = Callable[[Meeting], float | None]
Starts = Callable[[Meeting], int | None]
NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class DeviceBlame:
    """A rank whose GPU holds up a meeting. ``cause`` is None where it only differs from the others'.

    ``is_consequence``: its error is one that GPUs report beside another one where the trouble began.
    """

    rank: int
    meeting: Meeting
    cause: Cause | None
    is_consequence: bool = False


@dataclass(frozen=True)
class DeviceBlamer:
    """Looks for them.

    ``age_s`` says how old a moment is (epoch ns), ``waiting_s`` for how long a meeting has waited, ``since_ns`` since when.
    """

    view: EvidenceView
    graph: WaitGraph
    age_s: Ages
    waiting_s: Waits
    since_ns: Starts

    def find(self) -> dict[int, DeviceBlame]:
        """By rank. Linear in the ranks that wait."""
        if not self.view.devices:
            return {}
        found = [blame for sink in self.graph.sinks if len(sink) == 1 for node in sink for blame in self._at(node)]
        worst: dict[str | None, tuple[int, bool]] = {}
        for blame in found:
            host = self.view.host(blame.rank)
            worst[host] = min(worst.get(host, (len(SEVERITY), True)), _severity(blame))
        return {blame.rank: blame for blame in found if _severity(blame) == worst[self.view.host(blame.rank)]}

    def fault(self, rank: int, meeting: Meeting) -> Cause | None:
        """What went wrong with a rank's GPU not long before a meeting began to wait."""
        device = self.view.devices.get(rank)
        return fault_of(device, lambda xid: self.is_recent(xid.at_ns, meeting)) if device is not None else None

    def is_recent(self, at_ns: int | None, meeting: Meeting) -> bool:
        """Whether a moment lies not long before a meeting began to wait, or later; so does one that nobody knows."""
        since_ns = self.since_ns(meeting)
        if at_ns is None:
            return True
        if since_ns is not None:
            return at_ns >= since_ns - BEFORE_S * NS_PER_S
        age_s, waited_s = self.age_s(at_ns), self.waiting_s(meeting)
        return age_s is None or waited_s is None or age_s <= waited_s + BEFORE_S

    def is_origin(self, rank: int, meeting: Meeting) -> bool:
        """Whether a rank's GPU reports the error with which the trouble of a link begins."""
        device = self.view.devices.get(rank)
        xids: tuple[XidSeen, ...] = device.xids if device is not None else ()
        return any(xid.code in LINK_ORIGINS and self.is_recent(xid.at_ns, meeting) for xid in xids)

    def steady_shape(self, rank: int) -> DeviceShape | None:
        """What its GPU does in all samples; None if that is not known, or not one thing."""
        seen = self.view.all_devices.get(rank, ())
        shapes = {device.shape for device in seen}
        is_known = len(shapes) == 1 and not shapes & {DeviceShape.UNKNOWN, DeviceShape.VARYING}
        is_own = all(device.joined_by is not DeviceJoin.LOCAL_RANK and not device.is_shared for device in seen)
        return next(iter(shapes)) if is_known and is_own else None

    def _at(self, node: Node) -> Iterator[DeviceBlame]:
        return self._at_rank(node) if isinstance(node, int) else self._at_meeting(self.graph.meetings[node])

    def _at_rank(self, rank: int) -> Iterator[DeviceBlame]:
        """A rank that others wait for, and that may itself wait for its GPU."""
        meeting = min(self.graph.missed_by(rank), key=lambda meeting: meeting.key, default=None)
        standing = self.graph.room.standings[rank]
        if meeting is None or not _may_hang_on_device(standing):
            return
        fault = self.fault(rank, meeting)
        if fault is not None:
            yield DeviceBlame(rank, meeting, fault, fault is Cause.NVLINK and not self.is_origin(rank, meeting))
        elif _waits_for_device(standing) and (shape := self.steady_shape(rank)) is not None:
            yield DeviceBlame(rank, meeting, Cause.GPU_KERNEL if shape in RESIDENT else None)

    def _at_meeting(self, meeting: Meeting) -> Iterator[DeviceBlame]:
        """All are there and nothing moves, or some were not seen."""
        faults = {rank: self.fault(rank, meeting) for rank in (*meeting.waiting, *meeting.unknown)}
        faulty = [rank for rank, fault in faults.items() if fault is not None and _counts(rank, fault, meeting)]
        are_links = {faults[rank] for rank in faulty} == {Cause.NVLINK}
        origins = [rank for rank in faulty if are_links and self.is_origin(rank, meeting)]
        if len(origins) == 1:
            yield DeviceBlame(origins[0], meeting, Cause.NVLINK)
        elif faulty:
            is_link = are_links and len(faulty) > 1
            yield from () if is_link else (DeviceBlame(rank, meeting, faults[rank]) for rank in faulty)
        elif meeting.is_full and not meeting.completed and not meeting.key.is_p2p:
            yield from self._odd_ones(meeting)

    def _odd_ones(self, meeting: Meeting) -> Iterator[DeviceBlame]:
        shapes = {rank: self.steady_shape(rank) for rank in meeting.waiting}
        odd = [rank for rank, shape in shapes.items() if shape is not DeviceShape.SPINNING]
        if None in shapes.values() or 2 * len(odd) >= len(shapes):
            return
        for rank in odd:
            yield DeviceBlame(rank, meeting, Cause.GPU_KERNEL if shapes[rank] in AT_WORK else None)


def _severity(blame: DeviceBlame) -> tuple[int, bool]:
    """The smaller the worse."""
    return SEVERITY.index(blame.cause) if blame.cause in SEVERITY else len(SEVERITY), blame.is_consequence


def _counts(rank: int, fault: Cause, meeting: Meeting) -> bool:
    """Where some were not seen, errors of one who waits may follow from one of those; not that a GPU is lost or its memory."""
    return rank in meeting.unknown or not meeting.unknown or fault in ITS_OWN


def _may_hang_on_device(standing: Standing) -> bool:
    """Unless its own stack shows something else that holds it: a loader, a file, a lock."""
    position = standing.position
    if standing.stance is Stance.ENDED:
        return False
    return position is None or not position.is_definite or position.cause is Cause.NATIVE_CODE


def _waits_for_device(standing: Standing) -> bool:
    return standing.position is not None and standing.position.place is Place.DEVICE


def link_ends(blamer: DeviceBlamer, meetings: Iterable[Meeting]) -> tuple[int, ...]:
    """The ranks of meetings whose GPUs report broken links, if there are several: then it is the link, and none of them."""
    ranks = {rank for meeting in meetings for rank in meeting.waiting if blamer.fault(rank, meeting) is Cause.NVLINK}
    return tuple(sorted(ranks)) if len(ranks) > 1 else ()
