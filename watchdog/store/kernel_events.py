"""What the kernel logs of a job's hosts say, by rank: errors of its GPU, and the deaths of its process or of a child.

A GPU is a rank's by its PCI address; only where no rank of a host has one known, by the process that the driver names. Process
numbers of a kernel log are the host's: they are compared with those of ranks on the same host, and with nothing else. Those
that a launcher reports may be a container's: they count only for a death, and only of what is called as ranks are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from msgspec.structs import replace

from pardbg.watchdog.model.device import DeviceJoin, DeviceSeen, XidSeen
from pardbg.watchdog.model.evidence import Evidence, RankDescription
from pardbg.watchdog.model.kernel import KernelLog, LinkEvent, OomKill, XidEvent, pci_key
from pardbg.watchdog.model.process import ProcessSample

NS_PER_S = 1_000_000_000
SAME_ERROR_NS = 5 * NS_PER_S  # NVML and the log tell of one error at about the same time
RANK_NAMES = ("python", "pt_main", "ray::")
"""How the names begin that a kernel log has for processes of ranks; at most 15 characters of each."""
_FOLLOWS = 45  # "preemptive cleanup", which may name what came before


@dataclass(frozen=True)
class RankKnown:
    """What leads from a host's log to a rank. ``children``: process numbers of children that were seen.

    ``reported_pid``: its process as its launcher counts.
    """

    rank: int
    host: str | None
    pids: frozenset[int]
    pci: str | None
    children: frozenset[int] = frozenset()
    reported_pid: int | None = None

    @classmethod
    def of(
        cls,
        rank: int,
        host: str | None,
        process: RankDescription | None,
        devices: Sequence[DeviceSeen],
        looks: Sequence[ProcessSample],
    ) -> "RankKnown":
        """Puts together what was seen of a rank. A GPU that is only guessed to be its own leads nowhere."""
        addresses = [device.pci_bus_id for device in devices if device.joined_by is not DeviceJoin.LOCAL_RANK]
        addresses.append(process.pci_bus_id if process is not None else None)
        pids = {look.pid for look in looks} | ({process.pid} if process is not None and process.pid is not None else set())
        children = frozenset(child.pid for look in looks for child in look.children)
        return cls(rank, host, frozenset(pids), next(filter(None, map(pci_key, addresses)), None), children)

    def is_of(self, kill: OomKill) -> bool:
        """Whether a death is that of its process, by its number."""
        return kill.pid in self.pids or (kill.pid == self.reported_pid and kill.name.startswith(RANK_NAMES))


@dataclass(frozen=True)
class KernelEvents:
    """``logs`` by the host as the job names it; None where the log does not tell whose it is and the job has several hosts."""

    logs: tuple[tuple[str | None, Evidence, KernelLog], ...]
    ranks: tuple[RankKnown, ...]

    @classmethod
    def of(cls, evidence: Iterable[Evidence], ranks: Iterable[RankKnown]) -> "KernelEvents":
        """Finds the logs, and whose hosts' they are."""
        known = tuple(ranks)
        hosts = sorted({rank.host for rank in known if rank.host})
        found = ((item, item.observation) for item in evidence if isinstance(item.observation, KernelLog))
        return cls(tuple((name_host(item.host, hosts), item, log) for item, log in found), known)

    @cached_property
    def xids(self) -> dict[int, tuple[XidSeen, ...]]:
        """The errors of each rank's GPU, oldest first; those that are only a warning are left out."""
        found: dict[int, list[XidSeen]] = {}
        for host, _, log in self.logs:
            for rank, events in self._by_rank(host, log).items():
                found.setdefault(rank, []).extend(_as_seen(events, {event.code for event in log.xids if event.is_fatal}))
        return {rank: tuple(seen) for rank, seen in sorted(found.items())}

    @cached_property
    def unclaimed(self) -> dict[str, tuple[XidEvent, ...]]:
        """By host the errors of GPUs of which nothing says whose they are, where that of some rank is not known."""
        found: dict[str, tuple[XidEvent, ...]] = {}
        for host, _, log in self.logs:
            here = self._at(host)
            claimed = {event for events in self._by_rank(host, log).values() for event in events}
            rest = tuple(event for event in log.xids if event.is_fatal and event not in claimed)
            if host is not None and rest and any(rank.pci is None for rank in here):
                addresses = {rank.pci for rank in here}
                found[host] = (*found.get(host, ()), *(event for event in rest if event.pci not in addresses))
        return {host: events for host, events in found.items() if events}

    @cached_property
    def kills(self) -> dict[int, OomKill]:
        """The death of each rank's own process for memory."""
        return {rank.rank: kill for rank in self.ranks for kill in self._kills(rank.host) if rank.is_of(kill)}

    @cached_property
    def child_kills(self) -> dict[int, OomKill]:
        """The newest death of a child of each rank, such as a loader's worker."""
        return {rank.rank: kill for rank in self.ranks for kill in self._kills(rank.host) if kill.pid in rank.children}

    def kills_on(self, host: str | None) -> tuple[OomKill, ...]:
        """All deaths for memory on a host."""
        return tuple(self._kills(host))

    def links_on(self, host: str) -> tuple[LinkEvent, ...]:
        """The changes of ports of a host, in the order of its log."""
        return tuple(event for name, _, log in self.logs if name == host for event in log.links)

    def xids_on(self, host: str) -> tuple[XidEvent, ...]:
        """All errors of GPUs of a host, in the order of its log."""
        return tuple(event for name, _, log in self.logs if name == host for event in log.xids)

    def evidence_of(self, host: str | None) -> Evidence | None:
        """The log of a host."""
        return next((item for name, item, _ in self.logs if name == host), None)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts whose logs were read."""
        return tuple(sorted({name for name, _, _ in self.logs if name is not None}))

    def _at(self, host: str | None) -> list[RankKnown]:
        return [rank for rank in self.ranks if host is not None and rank.host == host]

    def _kills(self, host: str | None) -> Iterable[OomKill]:
        return (kill for name, _, log in self.logs if name is not None and name == host for kill in log.kills)

    def _by_rank(self, host: str | None, log: KernelLog) -> dict[int, list[XidEvent]]:
        here = self._at(host)
        by_pci = _only_once((rank.pci, rank.rank) for rank in here if rank.pci is not None)
        by_pid = {} if by_pci else _only_once((pid, rank.rank) for rank in here for pid in rank.pids)
        found: dict[int, list[XidEvent]] = {}
        for event in log.xids:
            rank = by_pci.get(event.pci) if by_pci else by_pid.get(event.pid)
            if rank is not None and event.is_fatal:
                found.setdefault(rank, []).append(event)
        return found


def name_host(name: str | None, hosts: list[str]) -> str | None:
    """A log's host as the job writes it: ``node7`` for ``node7.cluster.local`` or ``node7-2026``. None if that is unclear."""
    if name is None:
        return hosts[0] if len(hosts) == 1 else None
    if name in hosts:
        return name
    short = [host for host in hosts if host.partition(".")[0] == name.partition(".")[0]]
    longer = [host for host in hosts if name.startswith(tuple(host + mark for mark in "._-"))]
    return short[0] if len(short) == 1 else max(longer, key=len, default=None) if not short else None


def with_logged_errors(
    devices: Mapping[int, tuple[DeviceSeen, ...]], kernel: KernelEvents
) -> dict[int, tuple[DeviceSeen, ...]]:
    """The GPUs with what logs say of them; one of which nothing else was seen is known by its errors alone."""
    if not kernel.xids:
        return dict(devices)
    merged = dict(devices)
    known = {rank.rank: rank for rank in kernel.ranks}
    for rank, xids in kernel.xids.items():
        seen = devices.get(rank) or (DeviceSeen(pci_bus_id=known[rank].pci, joined_by=DeviceJoin.FILE),)
        merged[rank] = tuple(replace(device, xids=merge_xids(device.xids, xids)) for device in seen)
    return dict(sorted(merged.items()))


def merge_xids(heard: tuple[XidSeen, ...], logged: tuple[XidSeen, ...]) -> tuple[XidSeen, ...]:
    """What NVML reported and what the log holds, each error once."""
    new = tuple(xid for xid in logged if not any(_is_same(xid, other) for other in heard))
    return tuple(sorted((*heard, *new), key=lambda xid: xid.at_ns or 0)) if new else heard


def _is_same(xid: XidSeen, other: XidSeen) -> bool:
    if xid.code != other.code:
        return False
    return xid.at_ns is None or other.at_ns is None or abs(xid.at_ns - other.at_ns) <= SAME_ERROR_NS


def _as_seen(events: list[XidEvent], logged: set[int]) -> Iterable[XidSeen]:
    """One for each error, and one for each that is only named as the cause of another.

    Not where the log holds that error of another GPU: then it began there, and was cleaned up here.
    """
    codes = set(logged)
    for event in events:
        if event.code == _FOLLOWS and event.caused_by is not None and event.caused_by not in codes:
            codes.add(event.caused_by)
            yield XidSeen(code=event.caused_by, at_ns=event.when.at_ns, is_implied=True)
        yield XidSeen(code=event.code, at_ns=event.when.at_ns)


def _only_once(pairs: Iterable[tuple[object, int]]) -> Mapping[object, int]:
    """Without what would lead to two ranks."""
    found: dict[object, set[int]] = {}
    for key, rank in pairs:
        found.setdefault(key, set()).add(rank)
    return {key: next(iter(ranks)) for key, ranks in found.items() if len(ranks) == 1}
