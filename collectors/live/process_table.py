"""All processes of this machine by parent, read once a look: some 20 us a process."""

import contextlib
import os
from collections import defaultdict
from pathlib import Path

from pardbg.collectors.procfs.stat import ProcessStat, parse_stat
from pardbg.watchdog.errors import ParseError

_MOST_DESCENDANTS = 1024


def read_process_table(proc: str = "/proc") -> dict[int, list[ProcessStat]]:
    """The children of every process, by its pid, in the order of their own pids."""
    children: dict[int, list[ProcessStat]] = defaultdict(list)
    for pid in sorted(int(name) for name in os.listdir(proc) if name.isdecimal()):  # noqa: PTH208 - names only
        with contextlib.suppress(OSError, ParseError):
            stat = parse_stat(Path(f"{proc}/{pid}/stat").read_text(encoding="utf-8", errors="replace"))
            children[stat.parent_pid].append(stat)
    return children


def descendants(children: dict[int, list[ProcessStat]], pid: int) -> list[ProcessStat]:
    """Children, then their children, and so on; at most `_MOST_DESCENDANTS`."""
    found = list(children.get(pid, ()))
    for stat in found:
        if len(found) >= _MOST_DESCENDANTS:
            break
        found += children.get(stat.pid, ())
    return found[:_MOST_DESCENDANTS]
