"""The conversation with agents that run on the nodes: HTTP, a request to all, answers as they come, always an end.

An agent may be hostile: what it sends is bounded (`MOST_PACKED_BYTES` an answer, `MOST_HELD_BYTES` together), nobody is
followed elsewhere, no proxy is used. Deadline: that of each request; `CONNECT_S` for a connection. Cost: a connection an agent,
which stays open between requests, and 2 ms of one processor for each TLS handshake. Nothing stays on the nodes: what an agent
has started for a scan ends a minute after its last request.
"""

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace, TracebackType

import aiohttp
from yarl import URL

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.agent_access import AgentAccess, Badge, tls_context
from pardbg.watchdog.transport.agent_addresses import AgentAddress
from pardbg.watchdog.transport.agent_failures import explain_failure
from pardbg.watchdog.transport.agent_words import (
    DEFLATE,
    JSON,
    LOOK_PATH,
    MOST_ERROR_BYTES,
    MOST_PACKED_BYTES,
    MSGPACK,
    explain_status,
)
from pardbg.watchdog.transport.answer import Answer, no_answer
from pardbg.watchdog.transport.assembling import LARGEST_DATA_BYTES
from pardbg.watchdog.transport.descriptors import allow_descriptors
from pardbg.watchdog.transport.lines import unpack
from pardbg.watchdog.transport.munge import MungeError
from pardbg.watchdog.transport.tls_buffers import keep_buffers_small

CONNECT_S = 8.0
LEAVE_S = 2.0
KEEP_S = 75.0
"""Longer than two samples lie apart, and shorter than an agent keeps an idle connection."""
MOST_DIALLING = 128
"""Connections that are being made at once."""
MOST_HELD_BYTES = 256 * 1024**2
_RESOLVERS = 32
_GRACE_S = 1.0
_MOST_ATTEMPTS = 3
_OK, _TOO_MANY = 200, 429


class _Asked(Noun, frozen=True, kw_only=True):
    """One request. ``accepted`` is the content type of its answer."""

    method: str
    path: str
    body: bytes
    accepted: str
    until_s: float


class _Heard(Noun, frozen=True, kw_only=True):
    """What has come of it. ``again_in_s``: the agent asks to be asked again."""

    node: str
    body: bytes = b""
    is_packed: bool = False
    reason: AbsenceReason | None = None
    detail: str = ""
    again_in_s: float | None = None


class _TooMuchError(Exception):
    """An answer is larger than it may be."""


class Agents:
    """Speaks to agents. Use it in a ``with``; it is for one thread."""

    def __init__(self, addresses: Sequence[AgentAddress], access: AgentAccess | None = None) -> None:
        """Connects to nobody yet.

        Raises:
            InputError: if a file of ``access`` cannot be used.
        """
        keep_buffers_small()
        self._access = access or AgentAccess()
        self._addresses = {address.node: address for address in addresses}
        self._badge = Badge(self._access)
        self._tls = tls_context(self._access) if any(map(self._access.is_encrypted, addresses)) else None
        self._look_path = f"{LOOK_PATH}?scan={uuid.uuid4()}"
        self._looking: set[str] = set()
        self._held_bytes = 0
        self._loop = asyncio.new_event_loop()
        self._resolvers = ThreadPoolExecutor(_RESOLVERS, thread_name_prefix="resolve")
        self._loop.set_default_executor(self._resolvers)
        self._sessions: dict[str, aiohttp.ClientSession] = {}
        self._gate = asyncio.Semaphore(MOST_DIALLING)

    def __enter__(self) -> "Agents":  # noqa: PYI034 - Self needs Python 3.11
        """Nothing is opened before the first request."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Closes."""
        self.close()

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes."""
        return tuple(self._addresses)

    def close(self) -> None:
        """Tells those that look that they need not any more, and closes all connections. Deadline: `LEAVE_S`, or so."""
        looking, self._looking = self._looking, set()
        if looking:
            over = _Asked(method="DELETE", path=self._look_path, body=b"", accepted=JSON, until_s=time.monotonic() + LEAVE_S)
            for _ in self._exchange(over, looking):
                pass
        for session in self._sessions.values():
            self._loop.run_until_complete(session.close())
        self._sessions = {}
        self._loop.run_until_complete(asyncio.sleep(0))  # transports are closed by what runs next
        self._resolvers.shutdown(wait=False, cancel_futures=True)
        self._loop.close()

    def ask(self, data: bytes, until_s: float, nodes: Collection[str] | None = None) -> Iterator[Answer]:
        """Puts a request of a scan to agents (None: all); one `Answer` each, as they come, the last at ``until_s`` or so.

        Raises:
            KeyError: if a node is none of ours.
        """
        asked = _Asked(method="POST", path=self._look_path, body=data, accepted=MSGPACK, until_s=until_s)
        for answer in self._exchange(asked, nodes):
            if answer.data is not None:
                self._looking.add(answer.node)
            yield answer

    def get(self, path: str, until_s: float, nodes: Collection[str] | None = None) -> Iterator[Answer]:
        """Reads what agents hold: the JSON at a path, as `ask` does."""
        return self._exchange(_Asked(method="GET", path=path, body=b"", accepted=JSON, until_s=until_s), nodes)

    def _exchange(self, asked: _Asked, nodes: Collection[str] | None) -> Iterator[Answer]:
        chosen = self._addresses if nodes is None else dict.fromkeys(nodes)
        return self._answers(asked, [self._addresses[node] for node in chosen])

    def _answers(self, asked: _Asked, addresses: Sequence[AgentAddress]) -> Iterator[Answer]:
        heard: asyncio.Queue[_Heard] = asyncio.Queue()
        opened = {address.node for address in addresses}
        try:
            is_shown = not all(address.socket for address in addresses)  # there the kernel says who comes
            badge = self._badge.show(asked.method, asked.path, asked.body) if is_shown else {}
            tasks = [self._loop.create_task(self._ask_one(address, asked, badge, heard)) for address in addresses]
        except MungeError as error:
            yield from (no_answer(address.node, *explain_failure(error, address)) for address in addresses)
            return
        try:
            while opened:
                some = self._loop.run_until_complete(_take(heard, asked.until_s + _GRACE_S))
                for one in some:
                    opened.discard(one.node)
                    yield self._settle(one)
                if not some:
                    break
            yield from (no_answer(node, AbsenceReason.TIMED_OUT, "its agent has not answered in time") for node in opened)
        finally:
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    def _settle(self, heard: _Heard) -> Answer:
        """Unpacks here, one after the other: an answer may become much larger."""
        self._held_bytes -= len(heard.body)
        if heard.reason is not None:
            return no_answer(heard.node, heard.reason, heard.detail)
        try:
            return Answer(node=heard.node, data=unpack(heard.body, LARGEST_DATA_BYTES) if heard.is_packed else heard.body)
        except ValueError as error:
            return no_answer(heard.node, AbsenceReason.UNREADABLE, f"its answer cannot be used: {error}")

    async def _ask_one(
        self, address: AgentAddress, asked: _Asked, badge: dict[str, str], heard: "asyncio.Queue[_Heard]"
    ) -> None:
        """Asks again if it is told to, or if a connection that had been open for long turns out to be closed."""
        got = _Heard(node=address.node, reason=AbsenceReason.TIMED_OUT, detail="its agent was not asked in time")
        for attempt in range(_MOST_ATTEMPTS):
            try:
                if attempt and badge:
                    badge = self._badge.show(asked.method, asked.path, asked.body)
                got = await self._attempt(address, asked, {} if address.socket else badge)
            except Exception as error:  # noqa: BLE001 - whatever an agent can make the client raise, it has its reason
                is_plain = not address.socket and not self._access.is_encrypted(address)
                reason, detail = explain_failure(error, address, is_plain=is_plain)
                got = _Heard(node=address.node, reason=reason, detail=detail)
                if attempt == 0 and isinstance(error, aiohttp.ServerDisconnectedError):
                    continue
            if got.again_in_s is None or time.monotonic() + got.again_in_s + _GRACE_S > asked.until_s:
                break
            await asyncio.sleep(got.again_in_s)
        heard.put_nowait(got)

    async def _attempt(self, address: AgentAddress, asked: _Asked, badge: dict[str, str]) -> _Heard:
        is_encrypted = self._access.is_encrypted(address)
        left_s = max(asked.until_s - time.monotonic(), 0.01)
        headers = {"Accept": asked.accepted, "Accept-Encoding": DEFLATE, **badge}
        if asked.body:
            headers["Content-Type"] = MSGPACK
        async with self._session(address.socket).request(
            asked.method,
            URL(f"{'https' if is_encrypted else 'http'}://{address.netloc}{asked.path}", encoded=True),
            data=asked.body or None,
            headers=headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=left_s, sock_connect=CONNECT_S),
            ssl=self._tls if is_encrypted and self._tls is not None else True,
            server_hostname=self._access.tls_name if is_encrypted else None,
        ) as response:
            return await self._read(address.node, response, asked.accepted)

    async def _read(self, node: str, response: aiohttp.ClientResponse, accepted: str) -> _Heard:
        if response.status != _OK:
            reason, detail = explain_status(response.status, await self._body(response, MOST_ERROR_BYTES, is_cut=True))
            again_in_s = _read_seconds(response.headers.get("Retry-After")) if response.status == _TOO_MANY else None
            return _Heard(node=node, reason=reason, detail=detail, again_in_s=again_in_s)
        coding = response.headers.get("Content-Encoding", "")
        if response.content_type != accepted or coding not in {"", DEFLATE}:
            detail = f"it answers with {response.content_type[:80]!r}, which no agent does"
            return _Heard(node=node, reason=AbsenceReason.UNREADABLE, detail=detail)
        try:
            body = await self._body(response, MOST_PACKED_BYTES)
        except _TooMuchError as error:
            return _Heard(node=node, reason=AbsenceReason.UNREADABLE, detail=str(error))
        self._held_bytes += len(body)  # until it is settled
        return _Heard(node=node, body=body, is_packed=coding == DEFLATE)

    async def _body(self, response: aiohttp.ClientResponse, most_bytes: int, *, is_cut: bool = False) -> bytes:
        """At most so much; an answer that is longer is refused, or cut."""
        body = bytearray()
        try:
            async for part in response.content.iter_any():
                body += part
                self._held_bytes += len(part)
                if len(body) > most_bytes:
                    if is_cut:
                        break
                    raise _TooMuchError(f"its answer is larger than {most_bytes} bytes")
                if self._held_bytes > MOST_HELD_BYTES:
                    raise _TooMuchError("unfinished answers take too much memory")
        finally:
            self._held_bytes -= len(body)
        if is_cut and not response.content.at_eof():
            response.close()
        return bytes(body)

    def _session(self, socket: str) -> aiohttp.ClientSession:
        """One for all hosts, one for each socket. It must be called by a coroutine."""
        if socket not in self._sessions:
            most = allow_descriptors(len(self._addresses))
            connector: aiohttp.BaseConnector = (
                aiohttp.UnixConnector(socket) if socket else aiohttp.TCPConnector(limit=most, keepalive_timeout=KEEP_S)
            )
            self._sessions[socket] = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                trace_configs=[_one_by_one(lambda: self._gate)],
            )
        return self._sessions[socket]


async def _take(heard: "asyncio.Queue[_Heard]", until_s: float) -> list[_Heard]:
    """All that has come, at least one; none if the time is over."""
    with contextlib.suppress(asyncio.TimeoutError):
        found = [await asyncio.wait_for(heard.get(), max(until_s - time.monotonic(), 0.0))]
        while not heard.empty():
            found.append(heard.get_nowait())
        return found
    return []


def _one_by_one(gate: Callable[[], asyncio.Semaphore]) -> aiohttp.TraceConfig:
    """Lets only so many connections be made at once: hosts that are gone must not keep the others waiting for long."""
    tracing = aiohttp.TraceConfig()

    async def begin(_session: aiohttp.ClientSession, context: SimpleNamespace, _params: object) -> None:
        await gate().acquire()
        context.is_dialling = True

    async def end(_session: aiohttp.ClientSession, context: SimpleNamespace, _params: object) -> None:
        if getattr(context, "is_dialling", False):
            context.is_dialling = False
            gate().release()

    tracing.on_connection_create_start.append(begin)
    tracing.on_connection_create_end.append(end)
    tracing.on_request_exception.append(end)
    return tracing


def _read_seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isascii() and text.isdecimal() and len(text) <= 4 else None
