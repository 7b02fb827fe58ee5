"""``/proc/PID/status``, the two lines that show whether a thread lives: its state and how often it has gone to sleep."""

from typing import NamedTuple

from pardbg.watchdog.errors import ParseError

_STATE = b"\nState:\t"
_SWITCHES = b"\nvoluntary_ctxt_switches:\t"


class Vital(NamedTuple):
    """``state`` as in ``/proc/PID/stat``; ``switches``: voluntary context switches of the main thread so far."""

    state: str
    switches: int


def parse_vital(status: bytes) -> Vital:
    """Searches instead of splitting: this runs every second for every rank.

    Raises:
        ParseError: if it is no such file, or that of a process whose memory is gone.
    """
    state, switches = status.find(_STATE), status.find(_SWITCHES)
    if state < 0 or switches < 0:
        raise ParseError("not a /proc/PID/status")
    end = status.find(b"\n", switches + 1)
    try:
        return Vital(chr(status[state + len(_STATE)]), int(status[switches + len(_SWITCHES) : end]))
    except ValueError as error:
        raise ParseError("not a /proc/PID/status") from error
