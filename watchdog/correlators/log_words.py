"""How findings quote logs, and when logs may speak at all: where recorders or live looks show who waits, they decide."""

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.graph.log_facts import LogFact
from pardbg.watchdog.model.log_event import (
    BarrierFailed,
    CollectiveTimeout,
    FingerprintMismatch,
    GroupName,
    GroupStatus,
    LogEvent,
    OwnFailure,
    StoreTimeout,
)
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.report import EvidenceLine

MAX_LINES = 8
_TELLING: tuple[type[LogEvent], ...] = (
    OwnFailure,
    FingerprintMismatch,
    CollectiveTimeout,
    GroupStatus,
    BarrierFailed,
    StoreTimeout,
)
MAX_LINES_A_RANK = 2


def are_logs_alone(situation: Situation) -> bool:
    """Whether logs speak, and nothing better than logs says who waits."""
    return bool(situation.logs.facts) and not sees_waits(situation)


def sees_waits(situation: Situation) -> bool:
    """Whether something better than logs says who waits: a recorder, a live look, or a stack that shows a wait."""
    return bool(situation.view.recordings or situation.view.looks or situation.graph.meetings)


def log_line(fact: LogFact) -> EvidenceLine:
    """A line of a log as evidence."""
    return EvidenceLine(
        source=CollectorName.RANK_LOG,
        rank=fact.rank,
        host=fact.host,
        at=fact.observed_at,
        text=fact.event.text,
        origin=fact.origin,
    )


def log_lines(situation: Situation, rank: int) -> tuple[EvidenceLine, ...]:
    """The most telling lines of a rank's log."""
    facts = [fact for fact in situation.logs.facts if fact.rank == rank and isinstance(fact.event, _TELLING)]
    return tuple(log_line(fact) for fact in sorted(facts, key=_telling)[:MAX_LINES_A_RANK])


def name_log_group(group: GroupName) -> str:
    """A group as a watchdog calls it."""
    if group.desc and group.desc != "undefined":
        return f"the {group.desc} group"
    return f"group {group.name}" if group.name else "a group that the log does not name"


def _telling(fact: LogFact) -> int:
    return next(number for number, kind in enumerate(_TELLING) if isinstance(fact.event, kind))
