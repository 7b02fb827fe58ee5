"""An incident: a hang that an agent's watchdog found and kept."""

from enum import Enum

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.report import Report


class IncidentState(str, Enum):
    """What became of a hang: it lasts, the job went on by itself, or the job has ended."""

    OPEN = "open"
    RECOVERED = "recovered"
    ENDED = "ended"


class Incident(Noun, frozen=True, kw_only=True):
    """One hang of one attempt of a job.

    Attributes:
        id: short, unique, sorts by time: ``20261130-061500-4f2a``.
        job: the job's name, as the report has it; ``attempt`` its launch, None if unknown.
        world: what tells two worlds of one name apart: ``store|size|attempt``.
        host: the agent that led: it has scanned, and keeps the evidence.
        opened_at: RFC 3339, as ``updated_at``.
        report: the last scan's.
    """

    id: str
    job: str
    attempt: int | None
    world: str
    host: str
    state: IncidentState
    opened_at: str
    updated_at: str
    report: Report
