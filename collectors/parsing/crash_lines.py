"""Crashes, as Python's faulthandler tells of them before the process ends by their signal. Pure.

``Aborted`` tells nothing: watchdogs and libraries of communication end so who has waited too long.
"""

import re

from pardbg.collectors.parsing.log_lines import LineRead
from pardbg.watchdog.model.log_event import OwnFailure

WORDS = {"Fatal Python": ("Fatal Python error: ",)}
_FATAL = re.compile(r"\bFatal Python error: (?!Aborted)([A-Z]?[\w-]{1,40}(?: [\w-]{1,40}){0,12})")
_SIGNALS = {
    "Segmentation fault": "SIGSEGV",
    "Bus error": "SIGBUS",
    "Floating-point exception": "SIGFPE",
    "Floating point exception": "SIGFPE",
    "Illegal instruction": "SIGILL",
}
_OF_THE_INTERPRETER = "SIGABRT"  # it gives up by itself: its stack is full, its memory is damaged


def read_crash(read: LineRead) -> OwnFailure | None:
    """What a line tells of a crash; None for any other."""
    match = _FATAL.search(read.line)
    return None if match is None else OwnFailure(rank=read.rank, signal=_SIGNALS.get(match[1], _OF_THE_INTERPRETER))


def tells_crash(text: str) -> bool:
    """Whether the stacks in a text are those of a process that has crashed: they show no wait."""
    return _FATAL.search(text) is not None
