"""What the server notes: every look and every refusal, a line each, and never what a secret could be in.

Refusals may be sent without end: `MOST_LINES` in `SPAN_S` are written, the rest is counted.
"""

import logging
import time
from collections.abc import Callable

from pardbg.watchdog.transport.printable import printable

SPAN_S = 10.0
MOST_LINES = 50
_log = logging.getLogger("pardbg.agent.server")


class Diary:
    """Writes to the log ``pardbg.agent.server``."""

    def __init__(self, count: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic) -> None:
        """``count`` is `Held.count`."""
        self._count, self._clock = count, clock
        self._began_s = clock()
        self._lines = 0

    def note_look(self, who: str, job: str, pids: tuple[int, ...], what: str) -> None:
        """A look at a job."""
        self._count("looks")
        _log.info("look: %s, job %s, pids %s: %s", printable(who), printable(job), ",".join(map(str, pids)), what)

    def note_refusal(self, who: str, what: str, why: str) -> None:
        """A request that was not done."""
        self._count("refusals")
        now_s = self._clock()
        if now_s - self._began_s > SPAN_S:
            if self._lines > MOST_LINES:
                _log.warning("refused: %d more requests", self._lines - MOST_LINES)
            self._began_s, self._lines = now_s, 0
        self._lines += 1
        if self._lines <= MOST_LINES:
            _log.warning("refused: %s: %s: %s", printable(who), printable(what), printable(why))

    def note_failure(self, what: str, why: str) -> None:
        """Something of ours, or of what we rely on, does not work."""
        _log.error("%s: %s", printable(what), printable(why))
