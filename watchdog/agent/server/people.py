"""The users of this machine: whose uid a name is, and who belongs to a group.

A directory service may be asked, which may hang: in a thread that may be left behind. Deadline: `WITHIN_S`. Answers are kept
for `KEPT_S`.
"""

import asyncio
import grp
import os
import pwd
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from pardbg.watchdog.agent.server.refused import RefusedError
from pardbg.watchdog.model.names import AbsenceReason

WITHIN_S = 3.0
KEPT_S = 60.0
_MOST_KEPT = 1000
_THREADS = 4
_UNAVAILABLE = 503
_OVERFLOW = Path("/proc/sys/kernel/overflowuid")
_EVERYBODY = ["0", "0", "4294967295"]

Answer = TypeVar("Answer")


class People:
    """Asks the machine."""

    def __init__(self, admin_group: str) -> None:
        """``admin_group``: whose members are admins; empty for none."""
        self._admin_group = admin_group
        self._kept: dict[tuple[str, object], tuple[float, object]] = {}
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="people")

    async def uid_of(self, name: str) -> int | None:
        """The uid of a user, None if this machine knows none of this name."""
        return await self._ask("uid", name, lambda: _uid_of(name))

    async def is_admin(self, uid: int) -> bool:
        """Whether a user may see everything: root, and the members of the group."""
        if uid == 0 or not self._admin_group:
            return uid == 0
        return await self._ask("admin", uid, lambda: _is_member(uid, self._admin_group))

    def close(self) -> None:
        """Waits for nobody."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _ask(self, what: str, whom: object, find: Callable[[], Answer]) -> Answer:
        kept = self._kept.get((what, whom))
        if kept is not None and time.monotonic() - kept[0] < KEPT_S:
            return kept[1]  # type: ignore[return-value] # it is what `find` of the same question has given
        try:
            found = await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(self._threads, find), WITHIN_S)
        except asyncio.TimeoutError:
            told = "this machine's list of users does not answer"
            raise RefusedError(
                _UNAVAILABLE, told, remedy="see getent passwd there, or use a token", reason=AbsenceReason.TIMED_OUT
            ) from None
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[what, whom] = (time.monotonic(), found)
        return found


def is_anybody(uid: int) -> bool:
    """Whether the kernel says this uid of everybody whom it cannot name here: in a user namespace, and nobody else's."""
    try:
        is_overflow = uid == int(_OVERFLOW.read_text(encoding="ascii"))
        return is_overflow and Path("/proc/self/uid_map").read_text(encoding="ascii").split() != _EVERYBODY
    except (OSError, ValueError):
        return False


def _uid_of(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except (KeyError, ValueError, OSError):
        return None


def _is_member(uid: int, group: str) -> bool:
    try:
        user = pwd.getpwuid(uid)
        return grp.getgrnam(group).gr_gid in os.getgrouplist(user.pw_name, user.pw_gid)
    except (KeyError, OSError):
        return False
