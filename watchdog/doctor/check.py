"""What one check finds, and all of them together."""

from collections.abc import Callable, Iterable
from enum import Enum

from pardbg.collectors.node.surroundings import Surroundings
from pardbg.watchdog.model.base import Noun

SCHEMA = "pardbg.doctor/1"
EXIT_CLEAR, EXIT_HINDERED = 0, 3


class State(str, Enum):
    """How much it costs: nothing, a part of what a scan shows, what a verdict rests on; or it cannot be told from here."""

    OK = "ok"
    LIMITS = "limits"
    BLOCKS = "blocks"
    UNKNOWN = "unknown"


class Check(Noun, frozen=True, kw_only=True):
    """One finding.

    Attributes:
        name: of the check; a check that looks at jobs may find something a job.
        seen: one clause with the value.
        cost: what pardbg cannot see because of it; None where it costs nothing.
        remedy: what to do, in words.
        command: the same as a command line to copy, where there is one.
    """

    name: str
    state: State
    seen: str
    cost: str | None = None
    remedy: str | None = None
    command: str | None = None

    @property
    def is_hindrance(self) -> bool:
        """Whether it keeps pardbg from seeing something."""
        return self.state in {State.LIMITS, State.BLOCKS}


CheckFunction = Callable[[Surroundings], Iterable[Check]]


class Examination(Noun, frozen=True, kw_only=True):
    """All checks of one machine at one moment (RFC 3339)."""

    schema: str = SCHEMA
    pardbg_version: str
    host: str
    checked_at: str
    checks: tuple[Check, ...]

    @property
    def exit_code(self) -> int:
        """3 if anything limits or blocks. What cannot be told is no reason."""
        return EXIT_HINDERED if any(check.is_hindrance for check in self.checks) else EXIT_CLEAR
