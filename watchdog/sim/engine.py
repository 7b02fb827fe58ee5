"""Plays the programs of all ranks against each other until nothing moves. States are not drawn: they follow.

A host runs down its program and launches; it stops at full queues, `Synchronize`, `HostBlock` or the end. A device starts a
launch when the stream's and the communicator's earlier launches are done. A collective is done when all members have started
it and agree; a transfer when both ends have started. This is a dataflow network: its end state and its times do not depend on
the order in which it is worked off.
"""

from collections import deque
from dataclasses import dataclass, field

from pardbg.watchdog.sim.instruction import (
    CallSite,
    Fate,
    HostBlock,
    Join,
    Launch,
    Mark,
    Op,
    Operation,
    Program,
    Synchronize,
    Vanish,
)
from pardbg.watchdog.sim.layout import Group

LAUNCH_COST_NS = 3_000_000
TRANSFER_COST_NS = 5_000_000


@dataclass(frozen=True)
class Pace:
    """How far a host runs ahead: at most ``queue_depth`` launches; with 1, it waits for each (gloo)."""

    queue_depth: int = 1024


@dataclass(eq=False)
class Flight:
    """One launch under way on one rank; times in ns since the start, None while it has not come so far."""

    launch: Launch
    rank: int
    enqueued_ns: int
    number: int  # of this communicator's launches on this rank
    started_ns: int | None = None
    completed_ns: int | None = None
    blockers: int = 0
    open_ends: int = 0
    earliest_ns: int = 0
    dependents: list["Flight"] = field(default_factory=list)

    @property
    def reported_ns(self) -> int | None:
        """When the recorder could learn of the completion, if ever."""
        return None if self.launch.fate is Fate.NOT_REPORTED else self.completed_ns


@dataclass(eq=False)
class Host:
    """One rank: its program, how far it is, and what it has launched. ``standing`` is where it waits for ever."""

    rank: int
    program: Program
    position: int = 0
    clock_ns: int = 0
    flights: list[Flight] = field(default_factory=list)
    awaited: list[Flight] = field(default_factory=list)
    tails: list[Flight] = field(default_factory=list)
    side: list[Flight] = field(default_factory=list)
    newest: dict[object, Flight] = field(default_factory=dict)
    counts: dict[object, int] = field(default_factory=dict)
    standing: CallSite | None = None
    has_vanished: bool = False

    @property
    def is_finished(self) -> bool:
        """Whether the program was left at its end."""
        return self.position >= len(self.program)

    @property
    def outstanding(self) -> list[Flight]:
        """What the recorder shows as not completed."""
        return [flight for flight in self.flights if flight.reported_ns is None]

    def count(self, key: object) -> int:
        """Numbers the uses of ``key`` on this rank, from 1."""
        self.counts[key] = number = self.counts.get(key, 0) + 1
        return number


def play(programs: dict[int, Program], pace: Pace) -> dict[int, Host]:
    """Runs the programs, keyed by rank, until nothing moves."""
    engine = _Engine(programs, pace)
    engine.run()
    return engine.hosts


class _Engine:
    def __init__(self, programs: dict[int, Program], pace: Pace) -> None:
        self.hosts = {rank: Host(rank, program) for rank, program in programs.items()}
        self._pace = pace
        self._movable = deque(self.hosts.values())
        self._startable: deque[Flight] = deque()
        self._meetings: dict[tuple[Group, int], list[Flight]] = {}
        self._offers: dict[tuple[Group, int, int, int], Flight] = {}

    def run(self) -> None:
        while self._movable or self._startable:
            while self._startable:
                self._start(self._startable.popleft())
            if self._movable:
                self._advance(self._movable.popleft())

    def _advance(self, host: Host) -> None:
        while not self._must_wait(host) and not host.is_finished:
            instruction = host.program[host.position]
            match instruction:
                case Launch():
                    host.standing = instruction.first.site
                    self._launch(host, instruction)
                    self._respect_queue(host)
                case Join():
                    host.tails += host.side
                    host.side = []
                case Synchronize(site=site):
                    host.standing = site
                    host.awaited = list(host.tails)
                case HostBlock(site=site):
                    host.standing = site
                    return
                case Vanish():
                    host.has_vanished = True
                    return
                case Mark():
                    pass
            host.position += 1

    def _must_wait(self, host: Host) -> bool:
        if any(flight.completed_ns is None for flight in host.awaited):
            return True
        host.clock_ns = max([host.clock_ns, *(flight.completed_ns or 0 for flight in host.awaited)])
        host.awaited = []
        return False

    def _respect_queue(self, host: Host) -> None:
        if len(host.flights) >= self._pace.queue_depth:
            host.awaited = [host.flights[-self._pace.queue_depth]]

    def _launch(self, host: Host, launch: Launch) -> None:
        host.clock_ns += LAUNCH_COST_NS
        communicator = _communicator(launch, host.rank)
        flight = Flight(launch, host.rank, host.clock_ns, host.count(communicator))
        before = {id(earlier): earlier for earlier in (*host.tails, host.newest.get(communicator)) if earlier is not None}
        for earlier in before.values():
            flight.earliest_ns = max(flight.earliest_ns, earlier.completed_ns or 0)
            if earlier.completed_ns is None:
                earlier.dependents.append(flight)
                flight.blockers += 1
        host.flights.append(flight)
        host.newest[communicator] = flight
        if launch.is_async:
            host.side.append(flight)
        else:
            host.tails = [flight]
        if not flight.blockers:
            self._startable.append(flight)

    def _start(self, flight: Flight) -> None:
        flight.started_ns = flight.earliest_ns = max(flight.enqueued_ns, flight.earliest_ns)
        if flight.launch.fate is Fate.NEVER_DONE:
            return
        if not flight.launch.first.op.is_p2p:
            self._meet(flight, flight.launch.first)
            return
        flight.open_ends = len(flight.launch.operations)
        for operation in flight.launch.operations:
            self._offer(flight, operation)

    def _meet(self, flight: Flight, operation: Operation) -> None:
        meeting = self._meetings.setdefault((operation.group, flight.number), [])
        meeting.append(flight)
        if operation.op is Op.BROADCAST:
            ready = _served_by_root(meeting)
        elif len(meeting) == len(operation.group.ranks) and len({member.launch.first.contract for member in meeting}) == 1:
            ready = meeting
        else:
            return
        done_ns = max(member.started_ns or 0 for member in ready) + TRANSFER_COST_NS if ready else 0
        for member in ready:
            self._complete(member, done_ns)

    def _offer(self, flight: Flight, operation: Operation) -> None:
        source, target = _ends(operation, flight.rank)
        number = self.hosts[flight.rank].count(("transfer", operation.group, source, target))
        other = self._offers.pop((operation.group, source, target, number), None)
        if other is None:
            self._offers[operation.group, source, target, number] = flight
            return
        met_ns = max(flight.started_ns or 0, other.started_ns or 0)
        for end in (flight, other):
            end.open_ends -= 1
            end.earliest_ns = max(end.earliest_ns, met_ns)
            if not end.open_ends:
                self._complete(end, end.earliest_ns + TRANSFER_COST_NS)

    def _complete(self, flight: Flight, done_ns: int) -> None:
        if flight.completed_ns is not None or flight.launch.fate is Fate.STUCK_HERE:
            return
        flight.completed_ns = done_ns
        for dependent in flight.dependents:
            dependent.blockers -= 1
            dependent.earliest_ns = max(dependent.earliest_ns, done_ns)
            if not dependent.blockers:
                self._startable.append(dependent)
        host = self.hosts[flight.rank]
        if flight in host.awaited:
            self._movable.append(host)


def _served_by_root(meeting: list[Flight]) -> list[Flight]:
    """The root of a broadcast is done once its data is under way; it may run one operation ahead of the others."""
    for flight in meeting:
        operation = flight.launch.first
        if operation.root is not None and operation.group.ranks[operation.root] == flight.rank:
            return [member for member in meeting if member.launch.first.contract == operation.contract]
    return []


def _ends(operation: Operation, rank: int) -> tuple[int, int]:
    """Source and target, as group ranks."""
    here, there = operation.group.group_rank(rank), operation.peer
    if there is None:
        raise ValueError(f"{operation.op.value} without a peer")
    return (here, there) if operation.op is Op.SEND else (there, here)


def _communicator(launch: Launch, rank: int) -> object:
    """Transfers launched alone run on a hidden communicator of the two ranks, everything else on the group's."""
    operation = launch.first
    if not operation.op.is_p2p:
        return operation.group
    if launch.is_coalesced:
        return (operation.group, "coalesced")
    return (operation.group, *sorted(_ends(operation, rank)))
