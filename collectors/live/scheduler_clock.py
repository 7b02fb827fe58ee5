"""What time it is on a processor's own scheduler clock, against which ``se.exec_start`` of sleeping threads is measured.

Each processor's clock leaves out what that processor spent on interrupts, or lost to a hypervisor: after weeks they are minutes
to hours apart, so one's own clock will not do. A thread of ours moves to the processor and reads its own ``exec_start`` there.

Cost: one thread wakes up once on each processor asked about. Deadline: `_DEADLINE_S` each, should the processor never run it.
"""

import contextlib
import os
import threading
import time
from pathlib import Path

from pardbg.collectors.procfs.counters import last_ran_ms

_DEADLINE_S = 0.25


class SchedulerClock:
    """Remembers each processor's clock by its distance from the monotonic one. Starts threads: for a short-lived process."""

    def __init__(self) -> None:
        self._offsets_ms: dict[int, float | None] = {}

    def now_ms(self, processor: int) -> float | None:
        """The present on that processor's clock, None where it cannot be read."""
        if processor not in self._offsets_ms:
            self._offsets_ms[processor] = _measure_offset_ms(processor)
        offset_ms = self._offsets_ms[processor]
        return None if offset_ms is None else time.monotonic() * 1000 + offset_ms


def _measure_offset_ms(processor: int) -> float | None:
    found: list[float] = []

    def visit() -> None:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {processor})  # of this thread only
            ran_ms = last_ran_ms(Path("/proc/thread-self/sched").read_text(encoding="utf-8"))
            if ran_ms is not None:
                found.append(ran_ms - time.monotonic() * 1000)

    visitor = threading.Thread(target=visit, daemon=True)
    visitor.start()
    visitor.join(_DEADLINE_S)
    return found[0] if found else None
