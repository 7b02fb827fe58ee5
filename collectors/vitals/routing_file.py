"""The file `routing` of one rank's probe, held open and read again and again. Opened with the care of `page_file.py`.

Cost: some 10 system calls a look, 40 microseconds and 5 a step and layer that are new (measured at 64 experts).
"""

import os

from pardbg.collectors.parsing.routing_page import MOST_COUNTS, read_routing
from pardbg.collectors.probe.places import ROUTING_FILE
from pardbg.collectors.vitals.page_file import open_in_memory
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.routing import RoutingSeries
from pardbg.watchdog.model.world import RankProcess


class RoutingFile:
    """A file of routing that is open. Close it."""

    def __init__(self, descriptor: int, pid: int) -> None:
        self._descriptor, self._pid = descriptor, pid

    def read(self, after_step: int = -1, most_counts: int = MOST_COUNTS) -> RoutingSeries | None:
        """The steps after this one, oldest first; None if the file is torn or spoilt, or another has taken its place: reopen.

        Where they hold more than ``most_counts`` numbers, at 40 bytes each, the oldest are left out, but never the newest.

        Steps are numbered as on the rank's page. The last one may be missing until the next has ended: the device is not
        waited for.
        """
        try:
            return read_routing(self._cut, self._pid, after_step, most_counts)
        except (ParseError, OSError):
            return None

    def _cut(self, offset: int, size: int) -> bytes:
        return os.pread(self._descriptor, size, offset)

    def close(self) -> None:
        """Lets go of the file."""
        os.close(self._descriptor)


def open_routing(rank: RankProcess) -> RoutingFile | None:
    """The routing of a rank, None if it has none (no router has run yet), or none that may be believed.

    Raises:
        OnDiskError: if it keeps it on a disk.
    """
    descriptor = open_in_memory(rank, ROUTING_FILE)
    return None if descriptor is None else RoutingFile(descriptor, rank.own_pid)
