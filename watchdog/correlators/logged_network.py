"""A network that fails under NCCL, as its warnings say: whom to name, and a finding where no recorder shows who waits."""

from collections.abc import Iterable

from msgspec.structs import replace

from pardbg.watchdog.correlators.log_words import MAX_LINES, are_logs_alone, log_line
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, wait_verb
from pardbg.watchdog.graph.log_network import NetworkFault, find_network_fault, goes_peer_to_peer
from pardbg.watchdog.model.names import Cause, Confidence, Kind, Scope
from pardbg.watchdog.model.report import Finding, Subject

PEER_ACCESS = "Try NCCL_P2P_DISABLE=1: if that helps, switch off PCIe ACS, or the IOMMU, on this host."
ADVICE = (
    "Read the ports' counters on these hosts (link_downed, symbol errors): a flapping link, or two fabrics without a route."
)

ASK_WAY = (
    "See that the hosts reach each other on the interface that NCCL uses (NCCL_SOCKET_IFNAME, NCCL_IB_HCA), and firewalls."
)
ASK_MEMORY = (
    "A transfer of memory was refused: see that nvidia-peermem fits the driver, IOMMU and ACS are off, and that no process had "
    "ended before; NCCL_NET_GDR_LEVEL=LOC goes without direct access to GPU memory."
)


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding."""
    fault = find_network_fault(situation.logs)
    if fault is None or not are_logs_alone(situation) or situation.own_failures:
        return
    victims = tuple(situation.standings)
    is_sure = bool(fault.hosts or fault.link) and not (fault.is_never_met or fault.is_refused)
    yield Finding(
        kind=Kind.COMM_STUCK,
        cause=Cause.NCCL if fault.is_refused else Cause.NETWORK,
        confidence=Confidence.SUPPORTED if is_sure else Confidence.SUGGESTED,
        culprits=_subjects(fault),
        victims=victims,
        claim=f"{_words(fault)}{f'; {count_ranks(victims)} {wait_verb(victims)}' if victims else ''}",
        evidence=tuple(map(log_line, fault.facts[:MAX_LINES])),
        advice=(ASK_MEMORY if fault.is_refused else ASK_WAY if fault.is_never_met else ADVICE,),
    )


def explain_by_logs(situation: Situation, finding: Finding) -> Finding:
    """A standstill in which every member takes part, with the cause that logs give; what was seen itself counts more."""
    fault = find_network_fault(situation.logs) if finding.cause is None else None
    if fault is not None:
        return replace(
            finding,
            kind=Kind.COMM_STUCK,
            cause=Cause.NCCL if fault.is_refused else Cause.NETWORK,
            culprits=_subjects(fault),
            claim=f"{finding.claim}; {_words(fault)}",
            evidence=(*finding.evidence, *map(log_line, fault.facts[:MAX_LINES])),
            advice=(ADVICE,),
        )
    if finding.cause is None and finding.kind is Kind.INIT_STUCK and goes_peer_to_peer(situation.logs):
        return replace(
            finding,
            kind=Kind.COMM_STUCK,
            cause=Cause.P2P_ACCESS,
            confidence=Confidence.SUGGESTED,
            claim=f"{finding.claim}; it is the first operation, and the GPUs of the host copy to each other directly",
            advice=(PEER_ACCESS,),
        )
    return finding


def _subjects(fault: NetworkFault) -> tuple[Subject, ...]:
    """All hosts whose ports err, or the one link."""
    if fault.is_refused:
        return ()
    if fault.link:
        return (Subject(scope=Scope.LINK, hosts=fault.link, why="its two ends cannot reach each other"),)
    return tuple(
        Subject.of_host(host, f"NCCL reports {count} port error{'s' * (count > 1)} there")
        for host, count in zip(fault.hosts, fault.counts, strict=True)
    )


def _words(fault: NetworkFault) -> str:
    """``the network ports of a and b report errors``."""
    if fault.hosts:
        return f"the network ports of {' and '.join(fault.hosts[:4])} report errors"
    if fault.is_refused:
        ends = f" between {' and '.join(fault.link)}" if fault.link else ""
        return f"a network adapter refused a transfer{ends}: a matter of memory, a driver or an end that had gone before"
    if fault.is_never_met:
        whom = fault.link[1] if fault.link else " and ".join(fault.peers[:4]) or "another host"
        near = sorted({fact.host for fact in fault.facts if fact.host})
        return f"{' and '.join(near[:4]) or 'a host'} could not connect to {whom} over its network"
    if fault.link:
        return f"{fault.link[0]} cannot reach {fault.link[1]} over its network: retries ran out, and no port reports an error"
    if len(fault.peers) == 1:
        return f"a transfer to {fault.peers[0]} failed: retries ran out, and no port reports an error"
    return "transfers between hosts fail (retries ran out), of more than one pair"
