"""The last quarter of an hour of every rank, for those who ask how it came to this. Cost: 5 KB a rank."""

import threading
import time
from collections import deque
from typing import NamedTuple

from pardbg.watchdog.model.watched import AgentSnapshot, WatchedRank

BETWEEN_S = 5.0
KEPT_S = 900.0


class Moment(NamedTuple):
    """What a rank was like at a unix time, seconds. ``steps`` and ``step_s`` are None without a probe."""

    at_s: float
    quiet_s: float
    steps: int | None
    step_s: float | None


class History:
    """Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._moments: dict[tuple[int, int], deque[Moment]] = {}
        self._fed_at_s = float("-inf")

    def feed(self, snapshot: AgentSnapshot, now_s: float) -> None:
        """Remembers a moment of every rank, at most one in `BETWEEN_S`; ranks that have gone are forgotten."""
        if now_s - self._fed_at_s < BETWEEN_S:
            return
        self._fed_at_s = now_s
        ranks = {(rank.pid, rank.started_ticks): rank for job in snapshot.jobs for rank in job.ranks}
        with self._lock:
            for gone in self._moments.keys() - ranks.keys():
                del self._moments[gone]
            for key, rank in ranks.items():
                self._moments.setdefault(key, deque(maxlen=int(KEPT_S / BETWEEN_S))).append(_moment(rank))

    def of(self, rank: WatchedRank) -> tuple[Moment, ...]:
        """The moments of one rank, the oldest first."""
        with self._lock:
            return tuple(self._moments.get((rank.pid, rank.started_ticks), ()))


def _moment(rank: WatchedRank) -> Moment:
    return Moment(time.time(), rank.quiet_s, rank.step, rank.step_s)
