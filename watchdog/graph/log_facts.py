"""What the logs of all ranks tell together: whose each line is, when, and who was the first to fail by himself. Pure.

Lines that say that a peer was lost, or that a wait took too long, are secondary: whoever writes them is no first cause.
Clocks of hosts differ, so that errors closer to each other than the allowance have no order.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.log_event import (
    SECONDARY,
    WAITS,
    BarrierFailed,
    CollectiveTimeout,
    CommunicatorStep,
    DispatchTimeout,
    KilledForMemory,
    LauncherFailure,
    LogEvent,
    LogSeen,
    NcclProcess,
    NcclWarning,
    OwnFailure,
    StoreTimeout,
    Trouble,
    WayChosen,
)
from pardbg.watchdog.store.view import EvidenceView

NS_PER_S = 1_000_000_000
HALF_A_YEAR_NS = 183 * 86_400 * NS_PER_S
SET_UP_BEGAN, SET_UP_DONE = "Init START", "Init COMPLETE"
GAVE_UP = (CollectiveTimeout, StoreTimeout, BarrierFailed, DispatchTimeout)
"""Waits for others that a rank gave up; its watchdog's status and heartbeat may as well follow an error of its own."""

SHELL_SIGNAL_BASE = 128  # a shell reports death by signal N as 128 + N
ONE_HOST_S, SEVERAL_HOSTS_S = 1.0, 5.0  # errors closer than this have no order

_E = TypeVar("_E", bound=LogEvent)


@dataclass(frozen=True)
class LogFact:
    """One event, the global rank whose it is (None: nobody knows) and the host that the rank or the line is of."""

    rank: int | None
    host: str | None
    event: LogEvent
    origin: str
    observed_at: str | None = None


@dataclass(frozen=True)
class Failure:
    """An error that is a rank's own: the line or the exception, and when, if that is known.

    ``is_uncaught``: it is an exception, and torch says that nobody caught it; or a crash. ``is_passed``: its writer wrote much
    after it. ``is_crash``: a signal ended the process.
    """

    rank: int
    text: str
    at_ns: int | None = None
    is_uncaught: bool = False
    is_passed: bool = False
    is_crash: bool = False


@dataclass(frozen=True)
class LogFacts:
    """All facts in the order of the evidence. ``is_cut``: some log had more than is kept."""

    facts: tuple[LogFact, ...] = ()
    is_cut: bool = False

    @classmethod
    def of(cls, view: EvidenceView) -> "LogFacts":
        """Gives every event to the rank whose it is. Linear."""
        owners = _owners(view)
        facts = [fact for item in view.logs for fact in _facts(view, item, owners)]
        return cls(tuple(facts), any(isinstance(item.observation, LogSeen) and item.observation.is_cut for item in view.logs))

    def of_type(self, kind: type[_E]) -> list[tuple[LogFact, _E]]:
        """The facts whose event is of a kind, each with its event."""
        return [(fact, fact.event) for fact in self.facts if isinstance(fact.event, kind)]

    def first_lines(self, ranks: Iterable[int], kinds: tuple[type[LogEvent], ...]) -> list[LogFact]:
        """The first fact of such a kind of each of the ranks."""
        found: dict[int, LogFact] = {}
        for fact in self.facts:
            if fact.rank is not None and isinstance(fact.event, kinds):
                found.setdefault(fact.rank, fact)
        return [found[rank] for rank in ranks if rank in found]

    @property
    def bereaved(self) -> frozenset[int]:
        """The ranks whose logs hold secondary lines."""
        return frozenset(fact.rank for fact in self.facts if fact.rank is not None and isinstance(fact.event, SECONDARY))

    @cached_property
    def tells_of_waits(self) -> bool:
        """Whether any line says that somebody waited for others in vain."""
        return any(isinstance(fact.event, WAITS) for fact in self.facts)

    @cached_property
    def gave_up(self) -> frozenset[int]:
        """The ranks whose logs say that they waited for others in vain."""
        return frozenset(fact.rank for fact in self.facts if fact.rank is not None and isinstance(fact.event, GAVE_UP))

    @property
    def newest_steps(self) -> dict[NcclProcess, tuple[LogFact, CommunicatorStep]]:
        """The last that each process and device says of its communicators: one completed later makes an open one history."""
        return {event.process: (fact, event) for fact, event in self.of_type(CommunicatorStep)}

    @property
    def setting_up(self) -> frozenset[int]:
        """The ranks that began to set up a communicator and did not complete it."""
        open_ = (fact.rank for fact, event in self.newest_steps.values() if event.step == SET_UP_BEGAN)
        return frozenset(rank for rank in open_ if rank is not None and not self.is_cut)


def own_failures(view: EvidenceView, logs: LogFacts) -> dict[int, Failure]:
    """The first error of its own of each rank that has one, as its log tells.

    None is what it survived: it says so itself, or it waited in a collective all the same. An error of its device after such a
    wait may come of the abort.
    """
    found = {rank: failure for rank, failure in _raised(view, logs).items() if not is_in_doubt(view, rank)}
    completed = {fact.rank for fact, event in logs.of_type(CommunicatorStep) if event.step == SET_UP_DONE}
    gave_up: set[int | None] = set()
    for fact in logs.facts:
        rank, event = fact.rank, fact.event
        if isinstance(event, GAVE_UP):
            gave_up.add(rank)
        is_warning = isinstance(event, NcclWarning) and event.trouble is Trouble.OUT_OF_MEMORY and rank not in completed
        if rank is None or rank in gave_up or not (is_warning or (isinstance(event, OwnFailure) and not event.is_survived)):
            continue
        known = found.get(rank)
        if known is None:
            is_crash = isinstance(event, OwnFailure) and bool(event.signal)
            is_uncaught = is_crash or (isinstance(event, OwnFailure) and event.is_fatal)
            found[rank] = Failure(rank, event.text, event.at_ns, is_uncaught, is_crash=is_crash)
        elif known.at_ns is None:
            found[rank] = replace(known, at_ns=event.at_ns)
    return dict(sorted(found.items()))


def doubtful_failures(view: EvidenceView, logs: LogFacts) -> dict[int, Failure]:
    """The exceptions that may be a rank's own, or what others did to it, of the ranks that are not known to have waited."""
    return {rank: failure for rank, failure in _raised(view, logs).items() if is_in_doubt(view, rank)}


def is_in_doubt(view: EvidenceView, rank: int) -> bool:
    """Whether the exception in a rank's log may not be what ended it; one that was caught is where it left with a code then."""
    found, process = view.tracebacks.get(rank), view.processes.get(rank)
    code = process.exit_code if process is not None else None
    left_by_itself = code is not None and 0 < code < SHELL_SIGNAL_BASE
    return found is not None and (found.is_doubtful or (found.is_caught and not left_by_itself))


def _raised(view: EvidenceView, logs: LogFacts) -> dict[int, Failure]:
    return {
        rank: Failure(rank, seen.exception, seen.at_ns, seen.is_signed and not seen.is_passed, seen.is_passed)
        for rank, seen in view.tracebacks.items()
        if rank not in logs.gave_up
    }


def first_of(view: EvidenceView, failures: Sequence[Failure]) -> list[Failure]:
    """Those that may have been the first: within the allowance of the earliest one, or of unknown time."""
    dated = {failure.rank: failure.at_ns for failure in failures if failure.at_ns is not None}
    if not dated:
        return list(failures)
    wrap_ns = 2 * HALF_A_YEAR_NS if max(dated.values()) - min(dated.values()) > HALF_A_YEAR_NS else 0
    times = {rank: at_ns + (wrap_ns if at_ns < HALF_A_YEAR_NS else 0) for rank, at_ns in dated.items()}
    first = min(times, key=lambda rank: (times[rank], rank))
    host = view.host(first)
    kept = []
    for failure in failures:
        is_near = host is not None and view.host(failure.rank) == host
        limit_ns = (ONE_HOST_S if is_near else SEVERAL_HOSTS_S) * NS_PER_S
        if times.get(failure.rank, times[first]) - times[first] <= limit_ns:
            kept.append(failure)
    return kept


def _facts(view: EvidenceView, item: Evidence, owners: dict[NcclProcess, int]) -> Iterator[LogFact]:
    if not isinstance(item.observation, LogSeen):
        return
    for event in item.observation.events:
        rank = event.rank if event.rank is not None else item.rank
        host = None
        if isinstance(event, CommunicatorStep | NcclWarning | WayChosen):
            host = event.process.host
            rank = owners.get(event.process) if rank is None else rank
        elif isinstance(event, LauncherFailure | KilledForMemory):
            rank, host = event.rank, event.host
        rank = rank if rank is not None and rank < (view.world_size or 0) else None
        host = (view.host(rank) if rank is not None else None) or host or item.host
        yield LogFact(rank, host, event, item.origin, item.observed_at)


def _owners(view: EvidenceView) -> dict[NcclProcess, int]:
    """The global rank of each process and device that writes lines of NCCL: its rank in a communicator of the whole world.

    A smaller communicator numbers its members anew. Without a known world the largest communicator is taken for it; where
    several processes are one rank, as in sibling groups or in another attempt, none of them is.
    """
    steps = [
        event
        for item in view.logs
        if isinstance(item.observation, LogSeen)
        for event in item.observation.events
        if isinstance(event, CommunicatorStep)
    ]
    world = view.job.world_size or max((event.size for event in steps), default=0)
    claims: dict[int, set[NcclProcess]] = {}
    for event in steps:
        if event.size == world:
            claims.setdefault(event.comm_rank, set()).add(event.process)
    return {process: rank for rank, processes in claims.items() for process in processes if len(processes) == 1}
