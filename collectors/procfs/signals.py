"""``/proc/PID/task/TID/status``: the signals a thread catches, blocks and has pending, and how often it left the processor."""

import re

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun

_LINE = re.compile(
    r"^(SigPnd|SigBlk|SigIgn|SigCgt|voluntary_ctxt_switches|nonvoluntary_ctxt_switches):\s*([0-9a-f]+)$", re.MULTILINE
)


class ThreadSignals(Noun, frozen=True, kw_only=True):
    """The masks, bit N-1 for signal N. ``switches``: how often it went to sleep, and how often it was put off the processor."""

    pending: int
    blocked: int
    ignored: int
    caught: int
    switches: tuple[int, int]

    def is_ready_for(self, number: int) -> bool:
        """Whether a signal would run the thread's handler at once: it is caught, not blocked, and not under way already."""
        bit = 1 << (number - 1)
        return bool(self.caught & bit) and not (self.blocked | self.pending | self.ignored) & bit


def parse_signals(text: str) -> ThreadSignals:
    """Reads the lines.

    Raises:
        ParseError: if one of them is missing.
    """
    lines: dict[str, str] = {match[1]: match[2] for match in _LINE.finditer(text)}
    try:
        return ThreadSignals(
            pending=int(lines["SigPnd"], 16),
            blocked=int(lines["SigBlk"], 16),
            ignored=int(lines["SigIgn"], 16),
            caught=int(lines["SigCgt"], 16),
            switches=(int(lines["voluntary_ctxt_switches"]), int(lines["nonvoluntary_ctxt_switches"])),
        )
    except (KeyError, ValueError) as error:
        raise ParseError("not the status of a thread") from error
