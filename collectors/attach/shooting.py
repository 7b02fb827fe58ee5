"""Chooses a thread and fires one shot at a process, then waits until the thread is back in its call.

Cost: that of `shot.py`, once. Deadline: a shot not done within `DONE_S` is left alone and told as pending: it is done as soon
as the interpreter lock comes free. It is never repeated; what was refused because the threads moved is tried `TRIES` times.
"""

import time
from pathlib import Path

from pardbg.collectors.attach.assessing import Refused, assess, explain
from pardbg.collectors.attach.lines import LOG_LEVEL_HERE
from pardbg.collectors.attach.looking import look_at_call
from pardbg.collectors.attach.parking import ThreadLook
from pardbg.collectors.attach.shot import Aim, Shot, fire
from pardbg.collectors.attach.tracer import ShotError
from pardbg.collectors.live.scheduler_clock import SchedulerClock
from pardbg.collectors.procfs.counters import last_processor, last_ran_ms
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import AbsenceReason

DONE_S = 2.0
TRIES = 4
_POLL_S = 0.001
_MS = 1_000_000


class Outcome(Noun, frozen=True, kw_only=True):
    """What came of it: ``shot`` None: nothing was done, ``why`` and ``reason`` say why. ``is_done``: it is back in its call."""

    shot: Shot | None = None
    is_done: bool = False
    why: str = ""
    reason: AbsenceReason = AbsenceReason.UNSUPPORTED


def shoot(pid: int, code: str, *, proc: Path = Path("/proc")) -> Outcome:
    """Makes one parked thread of a process run Python source; every refusal is an outcome."""
    outcome = _shoot_once(pid, code, proc)
    for _ in range(TRIES - 1):
        if outcome.shot is not None or outcome.reason is not AbsenceReason.SKIPPED:
            break  # nothing else is known to pass in a moment
        outcome = _shoot_once(pid, code, proc)
    return outcome


def _shoot_once(pid: int, code: str, proc: Path) -> Outcome:
    chosen = assess(pid, proc)
    if isinstance(chosen, Refused):
        return Outcome(why=chosen.why, reason=chosen.reason)
    prepared, look = chosen.prepared, chosen.look
    try:
        aim = Aim(pid=pid, look=look, waited_ns=_waited_ns(pid, look.tid, proc), errno_offset=prepared.c_library.errno_offset)
        shot = fire(aim, prepared.functions, code.replace(LOG_LEVEL_HERE, str(prepared.log_level)))
    except (ShotError, OSError) as error:
        refused = explain(error)
        return Outcome(why=refused.why, reason=refused.reason)
    return Outcome(shot=shot, is_done=_is_back(pid, look, proc))


def _waited_ns(pid: int, tid: int, proc: Path) -> int:
    """For how long it has been in its call: since it last ran, by the clock of its processor. 0 where that is not known."""
    task = proc / str(pid) / "task" / str(tid)
    try:
        ran_ms, processor = (
            last_ran_ms((task / "sched").read_text(errors="replace")),
            last_processor((task / "stat").read_text(errors="replace")),
        )
    except (OSError, ParseError):
        return 0
    now_ms = SchedulerClock().now_ms(processor) if processor is not None else None
    return 0 if ran_ms is None or now_ms is None else max(0, int((now_ms - ran_ms) * _MS))


def _is_back(pid: int, look: ThreadLook, proc: Path) -> bool:
    """Whether it is out of the shot: in the same call as before, or at least no deeper on its stack than it was."""
    until_s = time.monotonic() + DONE_S
    while time.monotonic() < until_s:
        try:
            now = look_at_call(pid, look.tid, proc)
        except OSError:
            return False
        if now.stack >= look.stack:
            return True
        time.sleep(_POLL_S)
    return False
