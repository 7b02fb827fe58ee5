"""Munge credentials, decoded: who has made one, and for which request.

Cost: one child process of some 5 ms. Deadline: `WITHIN_S`. A credential counts once: munged remembers it.
"""

import asyncio
import re

from pardbg.watchdog.agent.server.refused import UNAUTHENTICATED, RefusedError
from pardbg.watchdog.model.names import AbsenceReason

WITHIN_S = 5.0
_AT_ONCE = 8
_MOST_BYTES = 16 * 1024
_FORM = re.compile(r"MUNGE:[A-Za-z0-9+/=]{1,8000}:", re.ASCII)
_DECODED = re.compile(rb"STATUS: +(?P<status>\d+)\nUID: +(?P<uid>\d+)\n(?:.*\n)*?\n(?P<payload>[ -~]*)", re.ASCII)
_UNAVAILABLE = 503
_MEANINGS = {15: "it is too old", 16: "it is from the future: clocks differ", 17: "it has been used"}


class Credentials:
    """Asks munged by its program."""

    def __init__(self, socket: str = "") -> None:
        """``socket``: of munged, if it is not the usual one."""
        self._command = ("unmunge", "--numeric", "--keys=STATUS,UID", *([f"--socket={socket}"] if socket else []))
        self._gate = asyncio.Semaphore(_AT_ONCE)

    async def decode(self, text: str) -> tuple[int, str]:
        """The uid of who has made it, and its words.

        Raises:
            RefusedError: if it is none, is too old, or has been used.
        """
        if _FORM.fullmatch(text) is None:
            raise RefusedError(UNAUTHENTICATED, "no munge credential", remedy="see munge(1)")
        async with self._gate:
            try:
                said, complaint, code = await asyncio.wait_for(_run(self._command, text.encode()), WITHIN_S)
            except (OSError, asyncio.TimeoutError) as error:
                told = f"munge does not answer on this node: {type(error).__name__}"
                raise RefusedError(
                    _UNAVAILABLE, told, remedy="see that munged runs there", reason=AbsenceReason.DENIED
                ) from error
        match = _DECODED.match(said[:_MOST_BYTES])
        if code != 0 or match is None or int(match["status"]) != 0:
            words = complaint.decode("utf-8", "replace").strip()[:100] or _MEANINGS.get(code, f"status {code}")
            raise RefusedError(UNAUTHENTICATED, f"the munge credential does not count: {words}", remedy="make a new one")
        return int(match["uid"]), match["payload"].decode("ascii")


async def _run(command: tuple[str, ...], given: bytes) -> tuple[bytes, bytes, int]:
    child = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        said, complaint = await child.communicate(given)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    return said, complaint, child.returncode or 0
