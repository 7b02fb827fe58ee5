"""Whether there may be new ranks: a look at the numbers of processes, so that a census is taken only when it is worth it.

Cost: one listing of ``/proc``, and a read of ``comm`` for each number that is new, some 20 microseconds. Neither can block.
"""

import os
from pathlib import Path

from pardbg.collectors.jobs.process import is_name_of_python

_PROC = Path("/proc")


class Newcomers:
    """Remembers who was there."""

    def __init__(self, proc: Path = _PROC) -> None:
        self._proc = proc
        self._known: frozenset[int] = frozenset()

    def is_any_python(self) -> bool:
        """Whether a process that seems to run Python has come since the last call."""
        present = frozenset(int(name) for name in os.listdir(self._proc) if name.isdecimal())  # noqa: PTH208 - names only
        new, self._known = present - self._known, present
        return any(self._seems_python(pid) for pid in new)

    def _seems_python(self, pid: int) -> bool:
        try:
            name = (self._proc / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").rstrip("\n")
        except OSError:
            return False
        return is_name_of_python(name)
