"""Runs an agent until it is told to end."""

import contextlib
import fcntl
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from pardbg.collectors.gpu.gpus import Gpus
from pardbg.watchdog.agent.agent import Agent
from pardbg.watchdog.agent.history import History
from pardbg.watchdog.agent.holding import Holding
from pardbg.watchdog.agent.request import Request, neighbours_of, receivers_of, server_options_of, settings_of
from pardbg.watchdog.agent.server.server import AgentServer
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.incidents.evidence import Retention
from pardbg.watchdog.incidents.incidents import Incidents
from pardbg.watchdog.incidents.lock import LOCK_NAME
from pardbg.watchdog.incidents.opening import make_folder
from pardbg.watchdog.incidents.trouble import StoreError

_log = logging.getLogger("pardbg.agent")
_TICK_S = 1.0
_DAY_S = 86400.0
_GIB = 1 << 30


def run_agent(request: Request) -> None:
    """Runs until SIGTERM or SIGINT.

    Raises:
        InputError: if it cannot run so.
        KeyboardInterrupt: after SIGINT, when everything has been closed.
    """
    server_options, receivers = server_options_of(request), receivers_of(request)
    server_options.check()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)  # a line for each scrape tells nobody anything
    ending = _Ending()
    with _only_agent_of(request.state), contextlib.ExitStack() as closing:
        incidents = Incidents(
            request.state,
            settings_of(request).host,
            receivers,
            retention=Retention(age_s=request.keep_days * _DAY_S, evidence_bytes=int(request.keep_gib * _GIB)),
        )
        closing.callback(incidents.close)
        gpus = None if request.no_gpu else closing.enter_context(Gpus())

        def own_socket() -> str:
            return str(server_options.socket) if gpus is not None and gpus.latest() else ""

        agent = Agent(settings_of(request), incidents, neighbours_of(request, own_socket))
        closing.callback(agent.close)
        history = History()
        server = AgentServer(Holding(agent, history, gpus), server_options)
        server.start()
        closing.callback(server.stop)
        _log.info("%s: listening on %s, keeping incidents in %s", agent.snapshot.host, server.places, request.state)
        _notify("READY=1")
        while not ending.is_set:
            began_s = time.monotonic()
            agent.tick()
            history.feed(agent.snapshot, began_s)
            ending.wait(max(began_s + _TICK_S - time.monotonic(), 0.0))
        _notify("STOPPING=1")
        _log.info("ending")
    if ending.is_interrupted:
        raise KeyboardInterrupt


class _Ending:
    """SIGTERM or SIGINT has come."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.is_interrupted = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._hear)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        self.is_interrupted |= number == signal.SIGINT
        self._event.set()

    @property
    def is_set(self) -> bool:
        """Whether it is time to end."""
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        """Until then, at most."""
        self._event.wait(seconds)


@contextlib.contextmanager
def _only_agent_of(folder: Path) -> Iterator[None]:
    """Two agents must not keep the same incidents."""
    try:
        make_folder(folder)
        descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except StoreError as error:
        raise InputError(f"cannot keep incidents: {error}", remedy=error.remedy) from error
    except OSError as error:
        raise InputError(f"cannot keep incidents in {folder}: {error.strerror}", remedy="give another --state DIR") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(f"another agent keeps its incidents in {folder}", remedy="give another --state DIR") from error
        yield
    finally:
        os.close(descriptor)


def _notify(words: str) -> None:
    """Tells systemd, if it asks for it (sd_notify)."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            channel.sendto(words.encode(), "\0" + address[1:] if address.startswith("@") else address)
