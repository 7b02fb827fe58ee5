"""The ways that NCCL chose, where a better one was there: a note with the remedy, or a finding where one host differs.

That a host lacks something is known only from another one that has it, or from a setting that forbids it.
"""

from collections.abc import Iterable

from pardbg.watchdog.correlators.config_mismatch import CLEAR_RATIO, LEAST_HOSTS
from pardbg.watchdog.correlators.log_words import log_line
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.model.host_names import fold_hosts_briefly
from pardbg.watchdog.model.log_event import Way, WayChosen
from pardbg.watchdog.model.names import Confidence, Kind
from pardbg.watchdog.model.report import Finding, Subject

_WORSE = {Way.SOCKET: Way.INFINIBAND, Way.SHM: Way.P2P}
_WORDS = {
    Way.SOCKET: "goes over sockets, where other hosts use InfiniBand",
    Way.SHM: "copies through shared memory, where GPUs of other hosts reach each other directly",
}
_REMEDIES = {
    Way.SOCKET: "See that this host has its InfiniBand devices (ibv_devinfo) and that the container may use them.",
    Way.SHM: "See nvidia-smi topo -m on this host, and whether ACS, the IOMMU or NCCL_P2P_LEVEL keeps the GPUs apart.",
}
_OFF = {
    Way.INFINIBAND_OFF: "NCCL may not use InfiniBand (NCCL_IB_DISABLE is set) on {hosts}: unset it unless it is meant so",
    Way.P2P_OFF: "NCCL may not copy between GPUs directly (NCCL_P2P_DISABLE is set) on {hosts}: unset it unless it is meant so",
    Way.DIRECT_RDMA_OFF: "the network cards of {hosts} do not reach GPU memory (GPU Direct RDMA is off): load nvidia-peermem "
    "and place each card beside its GPU (NCCL_NET_GDR_LEVEL)",
}


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding a way that some hosts took and most did not have to."""
    by_way = _hosts_by_way(situation)
    for worse, better in _WORSE.items():
        good = by_way.get(better, set())
        odd = sorted(by_way.get(worse, set()) - good)
        if odd and good:
            yield _describe(situation, worse, odd, good)


def way_notes(situation: Situation) -> tuple[str, ...]:
    """What settings or hardware forbid, with the remedy."""
    by_way = _hosts_by_way(situation)
    return tuple(words.format(hosts=fold_hosts_briefly(sorted(by_way[way]))) for way, words in _OFF.items() if by_way.get(way))


def _hosts_by_way(situation: Situation) -> dict[Way, set[str]]:
    found: dict[Way, set[str]] = {}
    for fact, event in situation.logs.of_type(WayChosen):
        if fact.host:
            found.setdefault(event.way, set()).add(fact.host)
    return found


def _describe(situation: Situation, way: Way, odd: list[str], good: set[str]) -> Finding:
    is_clear = len(odd) + len(good) >= LEAST_HOSTS and len(good) >= CLEAR_RATIO * len(odd)
    chosen = odd if is_clear else sorted({*odd, *good})
    why = {host: f"NCCL {_WORDS[way]}" if host in odd else "does not do so" for host in chosen}
    subjects = tuple(Subject.of_host(host, why[host]) for host in chosen)
    facts = [fact for fact, event in situation.logs.of_type(WayChosen) if event.way is way and fact.host in odd]
    return Finding(
        kind=Kind.CONFIG_MISMATCH,
        confidence=Confidence.SUPPORTED,
        culprits=subjects if is_clear else (),
        candidates=() if is_clear else subjects,
        claim=f"NCCL on {fold_hosts_briefly(odd)} {_WORDS[way]}",
        evidence=tuple(map(log_line, facts[:4])),
        advice=(_REMEDIES[way],),
    )
