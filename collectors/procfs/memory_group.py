"""Which file counts the processes of a control group that the kernel killed for memory, and what it says."""

import re
from collections.abc import Iterable

from pardbg.collectors.procfs.control_group import counter_file
from pardbg.collectors.procfs.mounts import Mount

_OOM_KILL = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


def oom_file(cgroup: str, mounts: Iterable[Mount]) -> str | None:
    """The path of the counter of a process, by its ``/proc/PID/cgroup`` and the mounts of the reader's own namespace."""
    return counter_file(cgroup, mounts, "memory", "memory.oom_control", "memory.events")


def parse_oom_kills(text: str) -> int | None:
    """The count in ``memory.events`` (v2) or ``memory.oom_control`` (v1, since Linux 4.13)."""
    found = _OOM_KILL.search(text)
    return int(found[1]) if found else None
