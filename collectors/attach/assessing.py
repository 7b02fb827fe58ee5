"""Whether a process could be attached to now, and at which thread: all that a shot looks at before it does anything.

Cost to the process: none, its memory is read; 40 ms.
"""

import platform
from pathlib import Path

from pardbg.collectors.attach.choosing import choose
from pardbg.collectors.attach.eligibility import why_not_process
from pardbg.collectors.attach.memory import opened
from pardbg.collectors.attach.parking import ThreadLook
from pardbg.collectors.attach.preparing import Prepared, prepare
from pardbg.collectors.attach.python_library import UnsupportedError
from pardbg.collectors.attach.tracer import ShotError
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import AbsenceReason


class Refused(Noun, frozen=True, kw_only=True):
    """Nothing is done to the process, and why: in words, and in the report's term."""

    why: str
    reason: AbsenceReason = AbsenceReason.UNSUPPORTED


class Chosen(Noun, frozen=True, kw_only=True):
    """The thread to borrow, and what is known of its process."""

    prepared: Prepared
    look: ThreadLook


def assess(pid: int, proc: Path = Path("/proc")) -> Chosen | Refused:
    """Chooses a thread of a process."""
    try:
        if reason := why_not_process((proc / str(pid) / "status").read_text(errors="replace"), platform.machine()):
            return Refused(why=reason)
        with opened(pid, proc) as memory:
            prepared = prepare(pid, memory.read, proc)
            return Chosen(prepared=prepared, look=choose(pid, prepared, memory.read, proc)[0])
    except (UnsupportedError, ShotError, ParseError, OSError) as error:
        return explain(error)


def explain(error: Exception) -> Refused:
    """What stands in the way, from what was raised."""
    if isinstance(error, (FileNotFoundError, ProcessLookupError)):
        return Refused(why="it has ended", reason=AbsenceReason.GONE)
    if isinstance(error, OSError):
        return Refused(why=f"the kernel refuses: {error.strerror}", reason=AbsenceReason.DENIED)
    return Refused(why=str(error), reason=AbsenceReason.SKIPPED if isinstance(error, ShotError) else AbsenceReason.UNSUPPORTED)
