"""Time as this package sees it: the wall's for people, a steady one for waiting; both can be made to run faster."""

import threading
import time
from datetime import datetime, timezone

from pardbg.watchdog.model.moments import parse_rfc3339


class Clock:
    """A clock.

    Args:
        speed: how many of its seconds pass in one of the world's: a test lives through an hour in some seconds.
    """

    def __init__(self, speed: float = 1.0) -> None:
        self._speed = speed
        self._began_wall_s, self._began_steady_s = time.time(), time.monotonic()

    def wall_s(self) -> float:
        """Epoch seconds; steps when somebody sets the machine's clock."""
        if self._speed == 1.0:
            return time.time()
        return self._began_wall_s + self.steady_s() - self._began_steady_s

    def steady_s(self) -> float:
        """Seconds that never step, from some beginning."""
        return self._began_steady_s + (time.monotonic() - self._began_steady_s) * self._speed

    def wait(self, event: threading.Event, duration_s: float) -> bool:
        """Waits for an event for some of this clock's seconds, and says whether it came."""
        return event.wait(duration_s / self._speed)


def as_rfc3339(wall_s: float) -> str:
    """Epoch seconds as text: ``2026-11-30T06:15:00.000Z``. Such texts sort by time."""
    return datetime.fromtimestamp(wall_s, tz=timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_rfc3339(moment: str) -> float:
    """Epoch seconds of a moment.

    Raises:
        ValueError: if it is none.
    """
    return parse_rfc3339(moment).timestamp()
