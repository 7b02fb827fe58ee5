"""Connections, bounded: how many, how long one may take to say what it wants, and what is said to bytes that are no HTTP.

One too many is told so and closed; it is not read. One that has sent no whole request within the patience of the options is
closed, and one that has been idle for `KEEP_S`.
"""

import asyncio
import logging
from collections import Counter

import msgspec
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from pardbg.watchdog.agent.server.diary import Diary
from pardbg.watchdog.agent.server.identifying import peer_uid
from pardbg.watchdog.agent.server.options import ServerOptions
from pardbg.watchdog.agent.server.refused import RefusedError, complain
from pardbg.watchdog.transport.agent_words import JSON, Complaint

KEEP_S = 90.0
_FULL = 429
NO_LOG = logging.Logger("nobody", logging.CRITICAL)  # noqa: LOG001 - it is to reach no handler
"""Who looks and who is refused is told elsewhere."""


class Connections:
    """Those that are open. Makes the protocol of each new one: what asyncio calls a protocol factory."""

    def __init__(self, server: web.Server, options: ServerOptions, diary: Diary) -> None:
        self._server, self._options, self._diary = server, options, diary
        self._from: Counter[str] = Counter()
        self.patience_s = options.patience_s

    def __call__(self) -> asyncio.Protocol:
        """The protocol of one connection."""
        return _Guarded(self._server, self)

    def admit(self, peer: str) -> bool:
        """Counts one in; False if it is one too many."""
        is_one_too_many = self._from.total() >= self._options.most_connections or (
            self._from[peer] >= self._options.most_from_one
        )
        self._from[peer] += 1
        if is_one_too_many:
            self._diary.note_refusal(peer or "somebody", "a connection", "too many at once")
        return not is_one_too_many

    def leave(self, peer: str) -> None:
        """Counts one out."""
        self._from[peer] -= 1
        if not self._from[peer]:
            del self._from[peer]

    def note(self, peer: str, why: str) -> None:
        """Something was no request."""
        self._diary.note_refusal(peer or "somebody", "what is no request", why)


class _Guarded(RequestHandler):
    """aiohttp's protocol, with limits."""

    __slots__ = ("_connections", "_first", "_peer")

    def __init__(self, server: web.Server, connections: Connections) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(server, loop=loop, keepalive_timeout=KEEP_S, access_log=NO_LOG, lingering_time=1.0)
        self._connections = connections
        self._peer = ""
        self._first: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Lets it in, or not."""
        self._peer = _name_peer(transport)
        is_admitted = self._connections.admit(self._peer)
        super().connection_made(transport)
        if is_admitted:
            self._first = self._loop.call_later(self._connections.patience_s, self._close_if_silent)
        elif isinstance(transport, asyncio.Transport):
            transport.write(_TOO_MANY)
            self.force_close()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Counts it out."""
        self._connections.leave(self._peer)
        if self._first is not None:
            self._first.cancel()
        super().connection_lost(exc)

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """What is said to bytes that are no HTTP, and if a handler fails where nobody else says it."""
        del request, message
        why = type(exc).__name__ if exc is not None else f"status {status}"
        self._connections.note(self._peer, why)
        error = RefusedError(status, "this is no request that an agent understands", remedy="speak HTTP/1.1, as curl does")
        response = complain(error)
        response.force_close()
        return response

    def _close_if_silent(self) -> None:
        if not self._request_count:
            self._connections.note(self._peer, f"no whole request within {self._connections.patience_s:g} s")
            self.force_close()


def _name_peer(transport: asyncio.BaseTransport) -> str:
    """The address, or on a unix socket the user: one of them must not use up what there is."""
    if (uid := peer_uid(transport)) is not None:
        return f"uid {uid}"
    name = transport.get_extra_info("peername")
    return str(name[0]) if isinstance(name, tuple) else ""


def _write_too_many() -> bytes:
    complaint = Complaint(error="too many connections", remedy="close some, or try again")
    body = msgspec.json.encode(complaint)
    lines = (
        f"HTTP/1.1 {_FULL} Too Many Requests",
        f"Content-Type: {JSON}",
        f"Content-Length: {len(body)}",
        "Connection: close",
        "\r\n",
    )
    return "\r\n".join(lines).encode() + body


_TOO_MANY = _write_too_many()
