"""What one way to a rank's flight recorder gives: its recording, or why there is none."""

from pardbg.watchdog.model.base import Noun
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


Outcome = Obtained | Refusal
