"""When a process started, on the clock that files are stamped with."""

import os
import time

CLOCK_SLACK_NS = 20_000_000  # a tick is 10 ms, and file systems round too


def started_ns(started_ticks: int) -> int:
    """Epoch ns. A process's ticks count from boot, sleep of the machine included."""
    boot_ns = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return boot_ns + started_ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
