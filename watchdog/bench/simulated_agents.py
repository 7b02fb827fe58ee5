"""Agents of a simulated job, all in one process, each at a loopback address of its own, over mutual TLS.

The server's own parts do the work before and after the answer: limits, TLS, who asks, the body, packing.
"""

import asyncio
import resource
from collections.abc import Sequence
from pathlib import Path

import msgspec
from aiohttp import web

from pardbg.watchdog.agent.server.access import Access
from pardbg.watchdog.agent.server.authorising import Authoriser
from pardbg.watchdog.agent.server.connections import Connections
from pardbg.watchdog.agent.server.diary import Diary
from pardbg.watchdog.agent.server.identifying import Identifier
from pardbg.watchdog.agent.server.options import ServerOptions
from pardbg.watchdog.agent.server.people import People
from pardbg.watchdog.agent.server.tls import server_context
from pardbg.watchdog.bench.certificates import Pair, sign
from pardbg.watchdog.bench.simulated_conversation import SimulatedConversation
from pardbg.watchdog.bench.simulated_nodes import SimulatedNodes
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.wanted import Cut
from pardbg.watchdog.scan.nodes.messages import ReadEntries, decode_request
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.transport.agent_words import DEFLATE, LOOK_PATH, MSGPACK

_IN_ONE_CERTIFICATE = 50
_PLENTY = 100_000


class Order(Noun, frozen=True, kw_only=True):
    """What to serve. ``folder`` gets ``agents.txt``, the list, when all listen; ``authority`` signs for both sides."""

    recipe: Recipe
    folder: str
    certificate: str
    key: str


def addresses_of(count: int) -> list[str]:
    """Loopback addresses, one an agent."""
    return [f"127.1.{number // 250}.{number % 250 + 1}" for number in range(count)]


def serve_agents(packed: bytes) -> None:
    """Serves until the process is ended."""
    order = msgspec.msgpack.decode(packed, type=Order)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, hard), hard))
    asyncio.run(_serve(order, _Packed(SimulatedNodes(order.recipe))))


class _Packed(SimulatedConversation):
    """The same nodes, one at a time: answers as they travel."""

    def __init__(self, simulated: SimulatedNodes) -> None:
        super().__init__(simulated)
        self._cuts_of: dict[bytes, tuple[Cut, ...]] = {}

    def answer(self, node: str, data: bytes) -> bytes:
        """One node's answer."""
        request = decode_request(data)
        if isinstance(request, ReadEntries) and data not in self._cuts_of:
            self._cuts_of = {data: self._simulated.entries(request.wanted)}
        return self._answer(node, request, self._cuts_of.get(data, ()))


async def _serve(order: Order, conversation: _Packed) -> None:
    hosts = addresses_of(len(conversation.nodes))
    node_of = dict(zip(hosts, conversation.nodes, strict=True))
    people = People("")
    access = Access(Identifier(people), Authoriser(), ServerOptions().patience_s)

    async def look(request: web.Request) -> web.Response:
        _, body = await access.receive(request)
        host = request.transport.get_extra_info("sockname")[0] if request.transport is not None else ""
        packed = conversation.answer(node_of[host], body)
        return web.Response(body=packed, content_type=MSGPACK, headers={"Content-Encoding": DEFLATE})

    application = web.Application()
    application.add_routes([web.post(LOOK_PATH, look)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    diary = Diary(lambda _: None)
    folder, authority = Path(order.folder), Pair(Path(order.certificate), Path(order.key))
    listed, port = [], 0
    for first in range(0, len(hosts), _IN_ONE_CERTIFICATE):
        some = hosts[first : first + _IN_ONE_CERTIFICATE]
        options = _options(sign(authority, folder, f"agents{first}", some), authority)
        tls = server_context(options, lambda _: None)
        if runner.server is None:
            raise RuntimeError("aiohttp has made no server")
        loop = asyncio.get_running_loop()
        if not port:
            server = await loop.create_server(Connections(runner.server, options, diary), some[0], 0, ssl=tls)
            port, some = server.sockets[0].getsockname()[1], some[1:]
        if some:
            await loop.create_server(Connections(runner.server, options, diary), some, port, ssl=tls)
    listed = [f"{host}:{port}" for host in hosts]
    _publish(folder / "agents.txt", listed)
    await asyncio.Event().wait()


def _options(own: Pair, authority: Pair) -> ServerOptions:
    return ServerOptions(
        tls_cert=own.certificate,
        tls_key=own.key,
        client_ca=authority.certificate,
        most_connections=_PLENTY,
        most_from_one=_PLENTY,
    )


def _publish(path: Path, lines: Sequence[str]) -> None:
    aside = path.with_suffix(".part")
    aside.write_text("\n".join(lines), encoding="ascii")
    aside.rename(path)
