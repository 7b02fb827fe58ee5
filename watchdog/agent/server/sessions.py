"""All look sessions of an agent: how many, how often, for how long, and whose.

At most `MOST` at once and `MOST_OF_ONE` of one requester, whose oldest gives way; of one job a new one at most every `APART_S`;
one that is idle for `IDLE_S` ends.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from pardbg.watchdog.agent.server.refused import FORBIDDEN, RefusedError
from pardbg.watchdog.agent.server.requester import Requester
from pardbg.watchdog.agent.server.session import AGENT_ENDS, LONGEST_S, Session
from pardbg.watchdog.model.watched import WatchedJob

MOST = 4
MOST_OF_ONE = 2
APART_S = 10.0
IDLE_S = 60.0
_BETWEEN_S = 1.0
_END_S = 6.0
_UNKNOWN, _CONFLICT, _FULL = 404, 409, 429


@dataclass
class Open:
    """A session, whose it is, and which part of which job it was opened for."""

    requester: str
    jobs: tuple[WatchedJob, ...]
    session: Session

    def is_over(self, now_s: float) -> bool:
        """Whether it has been idle, or open, for too long."""
        is_idle = not self.session.is_busy and now_s - self.session.used_s > IDLE_S
        return is_idle or now_s - self.session.began_s > LONGEST_S


class Sessions:
    """Use it in one event loop; `run` tidies up until it is cancelled."""

    def __init__(self, start: Callable[[int | None], Session], *, clock: Callable[[], float] = time.monotonic) -> None:
        """``start`` makes a session that may look at processes of one uid, or of all."""
        self._start, self._clock = start, clock
        self._open: dict[str, Open] = {}
        self._opened_s: dict[tuple[str, int], float] = {}

    async def run(self) -> None:
        """Ends sessions whose time is over."""
        while True:
            await asyncio.sleep(_BETWEEN_S)
            self.tidy()

    def tidy(self) -> None:
        """Ends sessions whose time is over."""
        now_s = self._clock()
        for scan in [scan for scan, one in self._open.items() if one.is_over(now_s)]:
            self._open.pop(scan).session.end()
        self._opened_s = {job: at_s for job, at_s in self._opened_s.items() if now_s - at_s < APART_S}

    async def close(self) -> None:
        """Ends all of them, and waits for their children."""
        ended = [one.session for one in self._open.values()]
        self._open = {}
        for session in ended:
            session.end(AGENT_ENDS)
        waits = (asyncio.to_thread(session.wait, _END_S) for session in ended)
        await asyncio.gather(*waits)

    def find(self, scan: str, requester: Requester) -> Open:
        """The open session of a scan.

        Raises:
            RefusedError: if there is none, it is somebody else's, or it is at work.
        """
        found = self._open.get(scan)
        if found is None:
            raise RefusedError(_UNKNOWN, "no look of this scan is open here", remedy="scan again: it finds the job first")
        if found.requester != requester.name:
            raise RefusedError(FORBIDDEN, "this look is somebody else's", remedy="choose another number for the scan")
        if found.session.is_busy:
            raise RefusedError(_CONFLICT, "this look is still at work", remedy="ask again when it has answered", again_in_s=1.0)
        return found

    def end(self, scan: str, requester: Requester) -> None:
        """Ends the session of a scan, if one is open and his."""
        found = self._open.get(scan)
        if found is not None and found.requester == requester.name:
            self._open.pop(scan).session.end()

    def open(self, scan: str, requester: Requester, jobs: tuple[WatchedJob, ...], uid: int | None) -> Open:
        """The session of a scan for these jobs: the one that is open, or a new one.

        Raises:
            RefusedError: if there are too many, or one was opened for this job a moment ago; or as `find`.
        """
        if scan in self._open:
            found = self.find(scan, requester)
            if _identities(jobs) <= _identities(found.jobs):
                return found
        self._check_pace(jobs)
        self._make_room(scan, requester)
        found = Open(requester.name, jobs, self._start(uid))
        self._open[scan] = found
        self._opened_s |= dict.fromkeys(_identities(jobs), self._clock())
        return found

    def _check_pace(self, jobs: tuple[WatchedJob, ...]) -> None:
        last_s = max((self._opened_s.get(job, float("-inf")) for job in _identities(jobs)), default=float("-inf"))
        left_s = last_s + APART_S - self._clock()
        if left_s > 0:
            told = f"this job is looked at once in {APART_S:.0f} s at most"
            raise RefusedError(_FULL, told, remedy=f"try again in {left_s:.0f} s", again_in_s=left_s)

    def _make_room(self, scan: str, requester: Requester) -> None:
        if (before := self._open.pop(scan, None)) is not None:
            before.session.end()
        own = [other for other, one in self._open.items() if one.requester == requester.name]
        if len(own) >= MOST_OF_ONE:
            self._open.pop(own[0]).session.end()
        if len(self._open) >= MOST:
            raise RefusedError(_FULL, f"{MOST} looks are open on this node", remedy="try again in a minute", again_in_s=IDLE_S)


def _identities(jobs: tuple[WatchedJob, ...]) -> set[tuple[str, int]]:
    return {(job.world, min((rank.pid for rank in job.ranks), default=0)) for job in jobs}
