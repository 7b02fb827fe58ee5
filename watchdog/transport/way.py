"""A way to the nodes: which processes to start here, and what their complaints mean. Values only; `switchboard` starts them."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.printable import printable


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One process to start here; the `collect` of ``nodes`` speak through it.

    Attributes:
        environment: None for our own.
        noise: lines on its standard error that mean nothing, and are not told.
    """

    nodes: tuple[str, ...]
    command: tuple[str, ...]
    environment: dict[str, str] | None = field(default=None, repr=False)
    noise: re.Pattern[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Sign:
    """Words on standard error, and what they mean. ``advice`` is empty or says what to try."""

    words: re.Pattern[str]
    reason: AbsenceReason
    advice: str = ""


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Nodes that the starting program itself reports as gone."""

    nodes: tuple[str, ...]
    detail: str


def hears_no_loss(line: str) -> Loss | None:  # noqa: ARG001 - the form of `Way.hear_loss`
    """For ways whose programs speak of no single node."""
    return None


@dataclass(frozen=True, kw_only=True)
class Way:
    """How to reach nodes.

    Attributes:
        most_starting: processes that may be starting (not yet greeted by their node) at once.
        signs: the first whose words occur on a process's standard error explains why its nodes cannot be reached.
        regroup: makes the launch for some of a launch's nodes, where one process serves many and can be held up by the others.
        hear_loss: reads a line of standard error for nodes that have gone while others go on.
    """

    name: str
    launches: tuple[Launch, ...]
    most_starting: int = 32
    signs: tuple[Sign, ...] = ()
    regroup: Callable[[tuple[str, ...]], Launch] | None = None
    hear_loss: Callable[[str], Loss | None] = hears_no_loss

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes, in order."""
        return tuple(node for launch in self.launches for node in launch.nodes)

    def explain(self, complaints: str) -> tuple[AbsenceReason, str] | None:
        """What the text on standard error means, if it is known."""
        for sign in self.signs:
            if found := sign.words.search(complaints):
                start = complaints.rfind("\n", 0, found.start()) + 1
                end = complaints.find("\n", found.end())
                said = printable(complaints[start : end if end >= 0 else None])
                return sign.reason, f"{self.name}: {said}" + (f"; {sign.advice}" if sign.advice else "")
        return None


NOT_THERE = Sign(
    words=re.compile(
        r"No module named|not found|No such file or directory|executable file|Exec format|cannot execute", re.IGNORECASE
    ),
    reason=AbsenceReason.NOT_INSTALLED,
    advice="the command that starts pardbg on the nodes is --remote-command, or PARDBG_REMOTE",
)
"""Pardbg, or the program on the way to it, is not where it was looked for."""
