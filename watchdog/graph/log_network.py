"""What NCCL's logs say of the network between hosts, and of the ways it chose. Pure.

A host whose ports report errors is at fault; the peer that a failed completion names is only the other end. Without any port
error a pair that never could talk is a matter of the link between the two.
"""

from dataclasses import dataclass

from pardbg.watchdog.graph.log_facts import SET_UP_DONE, LogFact, LogFacts
from pardbg.watchdog.model.log_event import CommunicatorStep, NcclWarning, Trouble, Way, WayChosen

RETRIES_RAN_OUT = 12
_PAIR = 2


@dataclass(frozen=True)
class NetworkFault:
    """Where it fails: ``hosts`` whose ports err, else the ends of ``link`` (the far one as its address), else unknown."""

    hosts: tuple[str, ...]
    counts: tuple[int, ...]
    link: tuple[str, ...]
    facts: tuple[LogFact, ...]


def find_network_fault(logs: LogFacts) -> NetworkFault | None:
    """What errors of ports and completions say together; None if there are none."""
    warnings = logs.of_type(NcclWarning)
    ports = [fact for fact, event in warnings if event.trouble is Trouble.PORT_ERROR]
    failed = [(fact, event) for fact, event in warnings if event.trouble is Trouble.COMPLETION_ERROR]
    hosts = tuple(sorted({fact.host for fact in ports if fact.host}))
    if not ports and not any(event.status == RETRIES_RAN_OUT for _, event in failed):
        return None
    facts = (*ports, *(fact for fact, _ in failed))
    if hosts:
        return NetworkFault(hosts, tuple(sum(fact.host == host for fact in ports) for host in hosts), (), facts)
    pairs = {frozenset({fact.host, event.peer}) for fact, event in failed if fact.host and event.peer}
    pair = next(iter(pairs)) if len(pairs) == 1 else frozenset()
    return NetworkFault(
        (), (), tuple(sorted(pair, key=lambda end: end != failed[0][0].host)) if len(pair) == _PAIR else (), facts
    )


def goes_peer_to_peer(logs: LogFacts) -> bool:
    """Whether GPUs of one host reach each other directly, every communicator is set up, and no network is used."""
    steps = logs.of_type(CommunicatorStep)
    completed = {event.process for _, event in steps if event.step == SET_UP_DONE}
    hosts = {event.process.host for _, event in steps} | {event.process.host for _, event in logs.of_type(WayChosen)}
    ways = {event.way for _, event in logs.of_type(WayChosen)}
    is_complete = bool(completed) and completed >= {event.process for _, event in steps}
    return is_complete and len(hosts) == 1 and Way.P2P in ways
