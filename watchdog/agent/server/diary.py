"""What the server notes: every look and every refusal, a line each, and never what a secret could be in.

Refusals may be sent without end: `MOST_LINES` in `SPAN_S` are written, and `MOST_ALIKE` of one sender and reason in `ALIKE_S`;
the rest is counted.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable

from pardbg.watchdog.transport.printable import printable

SPAN_S, ALIKE_S = 10.0, 60.0
MOST_LINES, MOST_ALIKE = 50, 5
_MOST_KINDS = 1000
_log = logging.getLogger("pardbg.agent.server")


class Diary:
    """Writes to the log ``pardbg.agent.server``."""

    def __init__(self, count: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic) -> None:
        """``count`` is `Held.count`."""
        self._count, self._clock = count, clock
        self._began_s = self._alike_began_s = clock()
        self._lines = 0
        self._alike: Counter[tuple[str, str]] = Counter()

    def note_look(self, who: str, job: str, pids: tuple[int, ...], what: str) -> None:
        """A look at a job."""
        self._count("looks")
        _log.info("look: %s, job %s, pids %s: %s", printable(who), printable(job), ",".join(map(str, pids)), what)

    def note_refusal(self, who: str, what: str, why: str) -> None:
        """A request that was not done."""
        self._count("refusals")
        now_s = self._clock()
        if now_s - self._alike_began_s > ALIKE_S or len(self._alike) > _MOST_KINDS:
            self.settle()
            self._alike_began_s = now_s
        self._alike[who, why] += 1
        if self._alike[who, why] <= MOST_ALIKE:
            self._write(f"refused: {printable(who)}: {printable(what)}: {printable(why)}", now_s)

    def settle(self) -> None:
        """Tells how many were alike, and forgets them."""
        alike, self._alike = self._alike, Counter()
        for (who, why), count in alike.items():
            if count > MOST_ALIKE:
                self._write(f"refused: {printable(who)}: {printable(why)}: ... and {count - MOST_ALIKE} more", self._clock())

    def _write(self, line: str, now_s: float) -> None:
        if now_s - self._began_s > SPAN_S:
            if self._lines > MOST_LINES:
                _log.warning("refused: %d more lines", self._lines - MOST_LINES)
            self._began_s, self._lines = now_s, 0
        self._lines += 1
        if self._lines <= MOST_LINES:
            _log.warning("%s", line)

    def note_failure(self, what: str, why: str) -> None:
        """Something of ours, or of what we rely on, does not work."""
        _log.error("%s: %s", printable(what), printable(why))
