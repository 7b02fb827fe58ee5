"""Which file counts for how long a control group was kept from running by its quota of processor time, and what it says."""

import re
from collections.abc import Iterable

from pardbg.collectors.procfs.control_group import counter_file
from pardbg.collectors.procfs.mounts import Mount

_THROTTLED = re.compile(r"^(?:throttled_usec (?P<us>\d{1,18})|throttled_time (?P<ns>\d{1,20}))$", re.MULTILINE)


def throttle_file(cgroup: str, mounts: Iterable[Mount]) -> str | None:
    """The path of the counter of a process, by its ``/proc/PID/cgroup`` and the mounts of the reader's own namespace."""
    return counter_file(cgroup, mounts, "cpu", "cpu.stat", "cpu.stat")


def parse_throttled_s(text: str) -> float | None:
    """Seconds so far, of all processors together, by ``cpu.stat`` of either version; None where there is no quota to count."""
    found = _THROTTLED.search(text)
    if found is None:
        return None
    return int(found["us"]) / 1e6 if found["us"] is not None else int(found["ns"]) / 1e9
