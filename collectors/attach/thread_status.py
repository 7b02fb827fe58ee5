"""``/proc/PID/task/TID/status``: what a shot has to know of a thread. Pure."""

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun


class ThreadStatus(Noun, frozen=True, kw_only=True):
    """Of one thread.

    Attributes:
        state: the letter of its state.
        switches: how often it has gone to sleep.
        has_signal: whether a signal waits for it that it does not block.
        inner_tid: its number in its own namespace of processes.
    """

    state: str
    switches: int
    has_signal: bool
    inner_tid: int


def parse_thread_status(text: str) -> ThreadStatus:
    """Reads it.

    Raises:
        ParseError: if it is none.
    """
    fields = {name: value.split() for name, _, value in (line.partition(":") for line in text.splitlines())}
    try:
        waiting = int(fields["SigPnd"][0], 16) | int(fields["ShdPnd"][0], 16)
        return ThreadStatus(
            state=fields["State"][0],
            switches=int(fields["voluntary_ctxt_switches"][0]),
            has_signal=bool(waiting & ~int(fields["SigBlk"][0], 16)),
            inner_tid=int((fields.get("NSpid") or fields["Pid"])[-1]),
        )
    except (KeyError, IndexError, ValueError) as error:
        raise ParseError("not the status of a thread") from error
