"""What one way to a rank's flight recorder gives: its recording, or why there is none. And what asking for its stacks gives."""

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Stack
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.model.recording import Recording


class Obtained(Noun, frozen=True, kw_only=True, tag="obtained"):
    """A recording, from where, and of which moment (epoch ns)."""

    recording: Recording
    origin: str
    observed_ns: int


class Refusal(Noun, frozen=True, kw_only=True, tag="refusal"):
    """A way that is there and gave nothing. A way that is not there is None instead."""

    reason: AbsenceReason
    detail: str
    origin: str = ""


class StackAnswer(Noun, frozen=True, kw_only=True, tag="stack-answer"):
    """What asking a rank for its own stacks gave; ``stack`` None: nothing, and ``detail`` says why.

    ``is_mute``: its worker server was asked and did not answer: it waits for the interpreter lock, and keeps the question.
    ``is_lock_held``: it was seen to wait for that lock just now.
    """

    stack: Stack | None = None
    origin: str = ""
    observed_ns: int = 0
    is_mute: bool = False
    is_lock_held: bool = False
    detail: str = ""


Outcome = Obtained | Refusal
