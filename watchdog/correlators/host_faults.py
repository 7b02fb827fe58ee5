"""What the kernel logs of hosts say of an operation that all have entered and none finishes, where it is not one rank's GPU.

Only asked once the graph has nobody to blame: an error alone accuses nobody, and ports of a host go down for many reasons.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from pardbg.watchdog.correlators.kernel_words import kernel_line, link_words, xid_words
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.graph.device_faults import SEVERITY, cause_of_xid
from pardbg.watchdog.graph.meetings import Meeting
from pardbg.watchdog.model.kernel import LinkEvent, LinkKind, Moment, XidEvent
from pardbg.watchdog.model.names import Cause
from pardbg.watchdog.model.report import EvidenceLine, Subject

MOST_LINES = 4


@dataclass(frozen=True)
class HostFault:
    """What a host's log tells that stops an operation, in words, each with its moment.

    ``is_doubtful``: it may not concern the job: it names processes that are none of the job's as far as their numbers are
    known, or a port of which nothing says that ranks talk over it.
    """

    host: str
    cause: Cause
    told: tuple[tuple[str, Moment], ...]
    is_doubtful: bool = False

    def subject(self) -> Subject:
        """The host, as reports name it."""
        return Subject.of_host(self.host, f"its kernel log tells of {self.told[-1][0]}")

    def lines(self, situation: Situation) -> Iterator[EvidenceLine]:
        """The evidence."""
        for text, when in self.told[-MOST_LINES:]:
            yield kernel_line(situation, self.host, None, text, when)


def device_faults(situation: Situation, meeting: Meeting, ranks: Collection[int] = ()) -> list[HostFault]:
    """Hosts of its members, or of these of them, with an error of a GPU, and nothing to say whose; the worst first."""
    found = []
    for host in _hosts(situation, ranks or (*meeting.entered, *meeting.completed)):
        events = [event for event in situation.view.kernel.unclaimed.get(host, ()) if _is_near(situation, meeting, event.when)]
        causes = [cause for cause in SEVERITY if any(cause_of_xid(event.code) is cause for event in events)]
        if causes and causes[0] is not Cause.NVLINK:
            worst = [event for event in events if cause_of_xid(event.code) is causes[0]]
            found.append(replace(_of_xids(host, causes[0], worst), is_doubtful=_is_strange(situation, host, worst)))
    return sorted(found, key=lambda fault: SEVERITY.index(fault.cause))


def link_faults(situation: Situation, meeting: Meeting) -> list[HostFault]:
    """Hosts of its members whose NVLinks or network ports their logs tell of: what was never put right, then what is recent."""
    return [*_nvlink_faults(situation, meeting), *_network_faults(situation, meeting)]


def _nvlink_faults(situation: Situation, meeting: Meeting) -> Iterator[HostFault]:
    """Fatal errors of links, which last until the GPUs are reset: also those of an earlier job."""
    for host in _hosts(situation, meeting.entered):
        unclaimed = situation.view.kernel.unclaimed.get(host, ())
        events = [
            event
            for event in situation.view.kernel.xids_on(host)
            if event.is_fatal and not event.is_cleared and cause_of_xid(event.code) is Cause.NVLINK
            if event in unclaimed or not _is_near(situation, meeting, event.when)
        ]
        if events:
            yield _of_xids(host, Cause.NVLINK, events)


def _network_faults(situation: Situation, meeting: Meeting) -> Iterator[HostFault]:
    """Ports that went down at about the time, or that are down and nobody knows since when."""
    hosts = _hosts(situation, meeting.entered)
    if len(hosts) < 2:
        return
    for host in hosts:
        events = situation.view.kernel.links_on(host)
        last = {(event.device, event.port): event for event in events}
        downs = [
            event
            for event in events
            if not event.is_up and _is_fabric(event)
            if (_is_near(situation, meeting, event.when) if event.when.at_ns else not last[event.device, event.port].is_up)
        ]
        if downs:
            is_doubtful = not any(event.kind is LinkKind.INFINIBAND for event in downs)
            yield HostFault(host, Cause.NETWORK, tuple((link_words(event), event.when) for event in downs), is_doubtful)


def _of_xids(host: str, cause: Cause, events: Iterable[XidEvent]) -> HostFault:
    return HostFault(host, cause, tuple((xid_words(event), event.when) for event in events))


def _is_strange(situation: Situation, host: str, events: Iterable[XidEvent]) -> bool:
    ranks = [rank for rank in situation.view.kernel.ranks if rank.host == host]
    known = {pid for rank in ranks for pid in (*rank.pids, *rank.children, rank.reported_pid)}
    are_known = all(rank.pids or rank.reported_pid for rank in ranks)
    return are_known and all(event.pid is not None and event.pid not in known for event in events)


def _hosts(situation: Situation, ranks: Iterable[int]) -> tuple[str, ...]:
    return tuple(sorted({host for rank in ranks if (host := situation.view.host(rank))}))


def _is_near(situation: Situation, meeting: Meeting, when: Moment) -> bool:
    return situation.device_blamer.is_recent(when.at_ns, meeting)


def _is_fabric(event: LinkEvent) -> bool:
    """Whether a port is one that ranks talk over: a management port is none."""
    return event.kind is LinkKind.INFINIBAND or ":" in event.device or event.device.startswith(("ib", "mlx", "rdma", "hsn"))
