"""How a rank ended, by everything that it has left: its page, what faulthandler wrote, its exit code. Pure.

The first word counts where another one follows from it: SIGTERM makes programs raise and return; an exception that has been
said stays the reason, whatever kills the process while it unwinds.
"""

import os
import re
import signal

from msgspec.structs import replace

from pardbg.collectors.ended.requests import LastRead, SignalStacks
from pardbg.watchdog.model.evidence import Stack
from pardbg.watchdog.model.heartbeat import Ending, EndingKind, Heartbeat

_GRACE_NS = 60 * 10**9  # how long programs clean up after SIGTERM
_SLACK_NS = 50_000_000  # file systems round times
_INTERRUPT = re.compile(r"KeyboardInterrupt(?::|$)")


def find_ending(heartbeat: Heartbeat | None, last: LastRead | None, exit_code: int | None) -> Ending | None:
    """The last word of a rank; None if it left none.

    Args:
        heartbeat: its page.
        last: its last files.
        exit_code: as its parent would be told, if that was seen.
    """
    said = heartbeat.ending if heartbeat is not None else None
    fatal, terminated = (last.fatal, last.terminated) if last is not None else (None, None)
    if said is not None and said.kind is EndingKind.EXCEPTION and _INTERRUPT.match(said.text):
        said = replace(said, kind=EndingKind.SIGNAL, code=-signal.SIGINT)
    if terminated is not None and not _came_before(said, terminated) and not _is_later(fatal, terminated, _GRACE_NS):
        return _of_signal(terminated, said)
    if said is not None and said.kind is EndingKind.EXCEPTION:
        return said
    if fatal is not None:
        return _of_signal(fatal, said)
    if said is None and exit_code is not None:
        kind = EndingKind.SIGNAL if exit_code < 0 else EndingKind.RETURNED
        return Ending(kind=kind, code=exit_code)
    return said


def last_stack(ending: Ending | None, last: LastRead | None) -> tuple[Stack, str] | None:
    """The stacks of the moment in which a signal ended the rank, and where they were written."""
    if ending is None or ending.kind is not EndingKind.SIGNAL or last is None:
        return None
    for written in (last.fatal, last.terminated, last.interrupted):
        if written is not None and written.code == ending.code and written.stack is not None:
            return written.stack, written.origin
    return None


def _came_before(said: Ending | None, terminated: SignalStacks) -> bool:
    """Whether it had ended on its own before the signal came, or so long after that it had lived on.

    The time of a file is never later than it was written.
    """
    if said is None or said.at_ns is None:
        return False
    return said.at_ns < terminated.at_ns or said.at_ns > terminated.at_ns + _GRACE_NS


def _is_later(fatal: SignalStacks | None, terminated: SignalStacks, by_ns: int) -> bool:
    return fatal is not None and (fatal.at_ns > terminated.at_ns + by_ns or fatal.at_ns < terminated.at_ns - _SLACK_NS)


def _of_signal(written: SignalStacks, said: Ending | None) -> Ending:
    oom_kills = said.oom_kills if said is not None else None
    return Ending(
        kind=EndingKind.SIGNAL, at_ns=written.at_ns, code=written.code, where=_where(written.stack), oom_kills=oom_kills
    )


def _where(stack: Stack | None) -> str:
    """The innermost line of the training code in the main thread."""
    main = stack.main_thread if stack is not None else None
    frames = main.frames if main is not None else ()
    frame = next((frame for frame in frames if frame.is_own), next(iter(frames), None))
    return frame.where if frame is not None else ""


def describe_cgroup(path: str | None) -> str:
    """Tells equal cgroups by their folder."""
    return os.path.normpath(path) if path else ""
