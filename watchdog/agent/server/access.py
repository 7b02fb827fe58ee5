"""Who asks, and what he may: the two questions behind every request."""

from aiohttp import web

from pardbg.watchdog.agent.server.authorising import Authoriser
from pardbg.watchdog.agent.server.identifying import Identifier, confirm
from pardbg.watchdog.agent.server.reading_body import read_body
from pardbg.watchdog.agent.server.requester import Requester

WHO = web.RequestKey("who", str)
"""Who has sent a request, for the log."""


class Access:
    """Asks them. ``may`` answers the second."""

    def __init__(self, identifier: Identifier, may: Authoriser, patience_s: float) -> None:
        """``patience_s``: how long a body may take."""
        self._identifier, self._patience_s = identifier, patience_s
        self.may = may

    async def identify(self, request: web.Request) -> Requester:
        """Who asks, by a request without a body; it is remembered for the log.

        Raises:
            RefusedError: if nobody knows.
        """
        requester = await self._name(request)
        confirm(requester, request.method, request.raw_path, b"")
        return requester

    async def receive(self, request: web.Request) -> tuple[Requester, bytes]:
        """Who asks, and then the body, which is not read of strangers.

        Raises:
            RefusedError: if nobody knows who asks, or the body cannot be used.
        """
        requester = await self._name(request)
        body = await read_body(request, self._patience_s)
        confirm(requester, request.method, request.raw_path, body)
        return requester, body

    async def _name(self, request: web.Request) -> Requester:
        requester = await self._identifier.identify(request)
        request[WHO] = requester.name
        return requester
