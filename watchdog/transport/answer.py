"""What a node answers: bytes, or why there are none."""

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason


class Answer(Noun, frozen=True, kw_only=True):
    """One node's answer to one request. Exactly one of ``data`` and ``absence`` is set."""

    node: str
    data: bytes | None = None
    absence: Absence | None = None


def no_answer(node: str, reason: AbsenceReason, detail: str) -> Answer:
    """A node that does not answer, and why."""
    return Answer(node=node, absence=Absence(reason=reason, detail=detail))
