"""What NCCL's logs say of the network between hosts, and of the ways it chose. Pure.

A host whose ports report errors is at fault; the peer that a failed completion names is only the other end. Without any port
error a pair that never could talk is a matter of the link between the two.
"""

from dataclasses import dataclass, replace

from pardbg.watchdog.graph.log_facts import SET_UP_DONE, LogFact, LogFacts
from pardbg.watchdog.model.log_event import CommunicatorStep, NcclWarning, Trouble, Way, WayChosen

RETRIES_RAN_OUT = 12
_REFUSALS = frozenset({4, 9, 10, 11})  # ibv_wc_status: local protection, and what the other end refused
_OF_HOST = (Trouble.PORT_ERROR, Trouble.ADAPTER_FAILED)
_PAIR = 2

_Told = list[tuple[LogFact, NcclWarning]]


@dataclass(frozen=True)
class NetworkFault:
    """Where it fails: ``hosts`` whose ports err, else the ends of ``link`` (the far one as its address), else unknown.

    Attributes:
        peers: the far ends, where no near one is known.
        is_never_met: connections were never set up, rather than cut.
        is_refused: an end refused a transfer: a matter of memory and drivers, not of the way between them.
    """

    hosts: tuple[str, ...]
    counts: tuple[int, ...]
    link: tuple[str, ...]
    facts: tuple[LogFact, ...]
    peers: tuple[str, ...] = ()
    is_never_met: bool = False
    is_refused: bool = False


def find_network_fault(logs: LogFacts) -> NetworkFault | None:
    """What errors of ports and completions say together; None if there are none."""
    warnings = logs.of_type(NcclWarning)
    ports = [fact for fact, event in warnings if event.trouble in _OF_HOST]
    failed = [(fact, event) for fact, event in warnings if event.trouble is Trouble.COMPLETION_ERROR]
    unmet = [(fact, event) for fact, event in warnings if event.trouble is Trouble.UNREACHABLE]
    refused = [(fact, event) for fact, event in warnings if event.trouble is Trouble.QUEUE_FAILED]
    refused += [(fact, event) for fact, event in failed if event.status in _REFUSALS]
    facts = (*ports, *(fact for fact, _ in (*failed, *unmet)))
    hosts = tuple(sorted({fact.host for fact in ports if fact.host}))
    if hosts:
        return NetworkFault(hosts, tuple(sum(fact.host == host for fact in ports) for host in hosts), (), facts)
    if ports or any(event.status == RETRIES_RAN_OUT for _, event in failed):
        return _between(failed, facts)
    if unmet:
        return replace(_between(unmet, facts), is_never_met=True)
    return replace(_between(refused, tuple(fact for fact, _ in refused)), is_refused=True) if refused else None


def _between(told: _Told, facts: tuple[LogFact, ...]) -> NetworkFault:
    """The link, if all speak of one pair."""
    pairs = {frozenset({fact.host, event.peer}) for fact, event in told if fact.host and event.peer}
    pair = next(iter(pairs)) if len(pairs) == 1 else frozenset()
    near = next((fact.host for fact, event in told if fact.host and event.peer), None)
    link = tuple(sorted((end for end in pair if end), key=lambda end: end != near)) if len(pair) == _PAIR else ()
    return NetworkFault((), (), link, facts, peers=tuple(sorted({event.peer for _, event in told if event.peer})))


def goes_peer_to_peer(logs: LogFacts) -> bool:
    """Whether GPUs of one host reach each other directly, every communicator is set up, and no network is used."""
    steps = logs.of_type(CommunicatorStep)
    completed = {event.process for _, event in steps if event.step == SET_UP_DONE}
    hosts = {event.process.host for _, event in steps} | {event.process.host for _, event in logs.of_type(WayChosen)}
    ways = {event.way for _, event in logs.of_type(WayChosen)}
    is_complete = bool(completed) and completed >= {event.process for _, event in steps}
    return is_complete and len(hosts) == 1 and Way.P2P in ways
