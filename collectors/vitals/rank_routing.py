"""The routing of one rank under watch: its file is looked for until it is there, read, and looked for anew when it is replaced.

Cost: that of `routing_file.py` each look. To look for the file takes some 100 microseconds each fifth look; where it lies in
another mount namespace, or where its user chose, a child process, ever more rarely, and nothing else here blocks. The rank
notices nothing.
"""

from collections.abc import Callable

from pardbg.collectors.vitals.inside_page import OnDiskError
from pardbg.collectors.vitals.page_file import is_near
from pardbg.collectors.vitals.routing_file import RoutingFile, open_routing
from pardbg.watchdog.model.routing import RoutingSeries
from pardbg.watchdog.model.world import RankProcess

_LOOKS_BETWEEN = 5
_MOST_LOOKS_BETWEEN = 1280
_MOST_COUNTS = 2**16
"""A look takes at most 3 MB of memory a rank, but for a single step that is larger."""


class RankRouting:
    """Reads what is new, once the rank counts steps: its file is there then. Close it. ``find`` opens the file."""

    def __init__(self, rank: RankProcess, find: Callable[[RankProcess], RoutingFile | None] = open_routing) -> None:
        self.rank = rank
        self._find_file = find
        self.newest_step = -1
        """The last step that was read."""
        self.problem = ""
        """Why nothing is read though something is counted; empty if that is not so."""
        self._file: RoutingFile | None = None
        self._look_count = 0
        self._next_try = 0 if is_near(rank) else rank.rank % _LOOKS_BETWEEN  # not all children in one look
        self._between = _LOOKS_BETWEEN

    def read(self, after_step: int) -> RoutingSeries | None:
        """The steps after this one that were not read yet, oldest first; None if there are none."""
        self._look_count += 1
        if self._file is None and not self._find():
            return None
        series = self._file.read(max(after_step, self.newest_step), _MOST_COUNTS) if self._file else None
        if series is None:
            self.close()
            self._next_try = self._look_count + (1 if is_near(self.rank) else self._between)
            return None
        if not series.rows:
            return None
        self.newest_step = series.rows[-1].step
        return series

    def close(self) -> None:
        """Lets go of the file."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def _find(self) -> bool:
        if self._look_count < self._next_try:
            return False
        self._next_try = self._look_count + self._between
        self._between = self._between if is_near(self.rank) else min(4 * self._between, _MOST_LOOKS_BETWEEN)
        self.problem = ""
        try:
            self._file = self._find_file(self.rank)
        except OnDiskError as error:
            self.problem = str(error)
        except OSError:
            return False
        return self._file is not None
