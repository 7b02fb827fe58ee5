"""One thread that does what may wait for the disk, in order, so that nobody else waits."""

import logging
import queue
import threading
import time
from collections.abc import Callable

from pardbg.watchdog.errors import PardbgError

_SLOW_S = 30.0
_log = logging.getLogger("pardbg.incidents")


class Worker:
    """Close it.

    Attributes:
        fault: what went wrong in the last piece of work, a mistake of ours; empty if nothing.
    """

    def __init__(self, name: str) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._busy_since_s: float | None = None
        self.fault = ""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def do(self, work: Callable[[], None]) -> None:
        """Does it after all that was asked for before."""
        self._work.put(work)

    def wait(self, timeout_s: float) -> bool:
        """Whether all that was asked for so far is done within this time."""
        done = threading.Event()
        self.do(done.set)
        return done.wait(timeout_s)

    @property
    def slow_s(self) -> float:
        """For how many seconds it has been at one piece of work, if that is too long; else 0."""
        since_s = self._busy_since_s
        busy_s = 0.0 if since_s is None else time.monotonic() - since_s
        return busy_s if busy_s > _SLOW_S else 0.0

    def close(self, timeout_s: float) -> bool:
        """Ends it after the work that is left; False if that takes longer: then it is abandoned."""
        self._work.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            self._busy_since_s = time.monotonic()
            try:
                work()
                self.fault = ""
            except PardbgError as error:
                self.fault = f"{error}; {error.remedy}"
                _log.error("%s", self.fault)
            except Exception as error:  # noqa: BLE001 - a thread that ends in silence would be worse
                _log.exception("a mistake of pardbg's")
                self.fault = f"internal error: {type(error).__name__}: {error}"
            self._busy_since_s = None
