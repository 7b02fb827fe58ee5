"""The agent's server: a thread with an event loop of its own, beside the thread that watches.

Cost: 25 MB, a file descriptor a connection, and nothing while nobody asks. `stop` ends open looks and leaves nothing behind.
"""

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType

from aiohttp import web

from pardbg.watchdog.agent.server.accepting import PEER
from pardbg.watchdog.agent.server.access import Access
from pardbg.watchdog.agent.server.application import make_application
from pardbg.watchdog.agent.server.authorising import Authoriser
from pardbg.watchdog.agent.server.connections import Connections
from pardbg.watchdog.agent.server.credentials import Credentials
from pardbg.watchdog.agent.server.diary import Diary
from pardbg.watchdog.agent.server.held import Held
from pardbg.watchdog.agent.server.identifying import Identifier
from pardbg.watchdog.agent.server.kubernetes import Kubernetes
from pardbg.watchdog.agent.server.listening import forget_socket, listen, places_of, ports_of
from pardbg.watchdog.agent.server.options import ServerOptions
from pardbg.watchdog.agent.server.people import People
from pardbg.watchdog.agent.server.session import Session, way_to_self
from pardbg.watchdog.agent.server.sessions import Sessions
from pardbg.watchdog.agent.server.tls import server_context
from pardbg.watchdog.agent.server.tokens import Tokens
from pardbg.watchdog.transport.serving import node_name

START_S = 10.0
STOP_S = 10.0
_SETTLE_S = 0.01

Start = Callable[[int | None], Session]


class AgentServer:
    """Serves what an agent holds. Use it in a ``with``, or `start` and `stop` it.

    Attributes:
        ports: that it listens on, once it has been started; of ``HOST:0`` the kernel chooses.
    """

    def __init__(self, held: Held, options: ServerOptions, *, start_session: Start | None = None) -> None:
        """Opens nothing yet.

        Args:
            held: what it serves.
            options: how.
            start_session: what looks; a child on this machine if None.

        Raises:
            InputError: if it would not be safe.
        """
        options.check()
        self._held, self._options = held, options
        self._start_session = start_session or self._look_here
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="server", daemon=True)
        self._began: Future[None] = Future()
        self._end = asyncio.Event()
        self.ports: tuple[int, ...] = ()

    def __enter__(self) -> "AgentServer":  # noqa: PYI034 - Self needs Python 3.11
        """Starts."""
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stops."""
        self.stop()

    def start(self) -> None:
        """Listens from now on.

        Raises:
            InputError: if a file cannot be used, or it cannot listen there.
        """
        self._thread.start()
        try:
            self._began.result(START_S)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends looks and connections. Deadline: `STOP_S`. It can be called again."""
        with contextlib.suppress(RuntimeError):  # its loop has ended already
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(STOP_S)

    @property
    def places(self) -> str:
        """Where it listens, in words, with the port that it has been given."""
        return places_of(self._options, self.ports)

    def _look_here(self, uid: int | None) -> Session:
        return Session(way_to_self(node_name(self._options.node or None), uid))

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._run())
        except BaseException as error:  # noqa: BLE001 - the thread that has started us is told
            if not self._began.done():
                self._began.set_exception(error)
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _run(self) -> None:
        async with contextlib.AsyncExitStack() as closing:
            closing.push_async_callback(asyncio.sleep, _SETTLE_S)  # at the very end: transports close in what runs next
            connections, tls = await self._build(closing)
            servers = await listen(self._options, connections, tls)
            closing.callback(forget_socket, self._options)
            closing.push_async_callback(asyncio.sleep, _SETTLE_S)  # what has been accepted becomes a connection, and is closed
            for server in servers:
                closing.callback(server.close)
            self.ports = ports_of(servers)
            self._began.set_result(None)
            await self._end.wait()

    async def _build(self, closing: contextlib.AsyncExitStack) -> tuple[Connections, ssl.SSLContext | None]:
        """All parts. They are closed in the reverse order."""
        options = self._options
        diary = Diary(self._held.count)
        closing.callback(diary.settle)
        tls = server_context(options, lambda why: diary.note_refusal(PEER.get(), "a TLS handshake", why))
        people = People(options.admin_group)
        closing.callback(people.close)
        kubernetes = Kubernetes(options.kubernetes, diary.note_failure) if options.kubernetes is not None else None
        if kubernetes is not None:
            closing.push_async_callback(kubernetes.close)
        identifier = Identifier(
            people,
            options=options,
            tokens=Tokens(options.tokens, diary.note_failure) if options.tokens is not None else None,
            credentials=Credentials(options.munge_socket) if options.has_munge else None,
            kubernetes=kubernetes,
        )
        sessions = Sessions(self._start_session)
        access = Access(identifier, Authoriser(kubernetes), options.patience_s)
        application = make_application(self._held, options, access, sessions, diary)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        closing.push_async_callback(runner.cleanup)
        closing.push_async_callback(sessions.close)
        tidying = asyncio.ensure_future(sessions.run())
        closing.callback(tidying.cancel)
        if runner.server is None:
            raise RuntimeError("aiohttp has made no server")
        return Connections(runner.server, options, diary), tls
