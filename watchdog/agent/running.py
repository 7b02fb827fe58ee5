"""From the options of `pardbg agent` to an agent that runs until it is told to end."""

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
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from pardbg.collectors.gpu.gpus import Gpus
from pardbg.watchdog.agent.agent import Agent
from pardbg.watchdog.agent.company import Neighbours
from pardbg.watchdog.agent.history import History
from pardbg.watchdog.agent.holding import Holding
from pardbg.watchdog.agent.quiet import Limits
from pardbg.watchdog.agent.server.options import KubernetesOptions, ServerOptions, split_host
from pardbg.watchdog.agent.server.server import AgentServer
from pardbg.watchdog.agent.settings import Settings, usual_state_folder
from pardbg.watchdog.errors import InputError, ParseError
from pardbg.watchdog.incidents.evidence import Retention
from pardbg.watchdog.incidents.incidents import Incidents
from pardbg.watchdog.incidents.receivers import Receiver, ReceiverKind, check_receiver
from pardbg.watchdog.transport.agent_access import AgentAccess
from pardbg.watchdog.transport.agent_addresses import AgentAddress, read_addresses

_log = logging.getLogger("pardbg.agent")
_TICK_S = 1.0
_DAY_S = 86400.0
_GIB = 1 << 30
_API = "https://kubernetes.default.svc"


@dataclass(frozen=True)
class Request:
    """The options, as the command line names them."""

    state_folder: Path | None = None
    node: str = ""
    listen: str = "127.0.0.1:9475"
    socket: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    client_ca: Path | None = None
    tokens: Path | None = None
    admin_group: str = ""
    open_metrics: bool = False
    has_munge: bool = False
    munge_socket: str = ""
    is_kubernetes: bool = False
    agents: str = ""
    peer_token_file: Path | None = None
    peer_ca: Path | None = None
    attach: str = "never"
    webhooks: tuple[str, ...] = ()
    webhook_token_file: Path | None = None
    alertmanagers: tuple[str, ...] = ()
    floor_s: float = 30.0
    cap_s: float = 300.0
    keep_days: float = 30.0
    keep_gib: float = 10.0
    no_gpu: bool = False

    @property
    def state(self) -> Path:
        """The state folder."""
        return self.state_folder or usual_state_folder()


def run_agent(request: Request) -> None:
    """Runs until SIGTERM or SIGINT.

    Raises:
        InputError: if it cannot run so.
        KeyboardInterrupt: after SIGINT, when everything has been closed.
    """
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    server_options, receivers, others = _server_options(request), _receivers(request), _others(request)
    server_options.check()
    ending = _Ending()
    with _only_agent_of(request.state), contextlib.ExitStack() as closing:
        incidents = Incidents(
            request.state,
            _settings(request).host,
            receivers,
            retention=Retention(age_s=request.keep_days * _DAY_S, evidence_bytes=int(request.keep_gib * _GIB)),
        )
        closing.callback(incidents.close)
        agent = Agent(_settings(request), incidents, _neighbours(request, others))
        closing.callback(agent.close)
        history = History()
        gpus = None if request.no_gpu else closing.enter_context(Gpus())
        server = AgentServer(Holding(agent, history, gpus), server_options)
        server.start()
        closing.callback(server.stop)
        _log.info("%s: listening on %s, keeping incidents in %s", agent.snapshot.host, request.listen, request.state)
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
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder / "agent.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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


def _settings(request: Request) -> Settings:
    return Settings(
        state_folder=request.state,
        node=request.node,
        limits=Limits(floor_s=request.floor_s, cap_s=max(request.cap_s, request.floor_s)),
        attach=request.attach,
    )


def _server_options(request: Request) -> ServerOptions:
    return ServerOptions(
        listen=request.listen,
        socket=request.socket or (Path("/run/pardbg/agent.sock") if os.geteuid() == 0 else request.state / "agent.sock"),
        tls_cert=request.tls_cert,
        tls_key=request.tls_key,
        client_ca=request.client_ca,
        tokens=request.tokens,
        has_munge=request.has_munge,
        munge_socket=request.munge_socket,
        admin_group=request.admin_group,
        kubernetes=KubernetesOptions(api=_API) if request.is_kubernetes else None,
        opens_metrics=request.open_metrics,
        may_attach=request.attach != "never",
        peers=tuple(address.netloc for address in _others(request)),
        node=request.node,
    )


def _receivers(request: Request) -> tuple[Receiver, ...]:
    token_file = str(request.webhook_token_file) if request.webhook_token_file else None
    return tuple(
        check_receiver(receiver)
        for receiver in (
            *(Receiver(kind=ReceiverKind.WEBHOOK, url=url, token_file=token_file) for url in request.webhooks),
            *(Receiver(kind=ReceiverKind.ALERTMANAGER, url=url) for url in request.alertmanagers),
        )
    )


def _others(request: Request) -> tuple[AgentAddress, ...]:
    if not request.agents:
        return ()
    path = Path(request.agents)
    try:
        return read_addresses(path.read_text(encoding="utf-8") if path.is_file() else request.agents)
    except (ParseError, OSError) as error:
        raise InputError(f"--agents {request.agents!r}: {error}", remedy="give n[01-64], or a file with such lines") from error


def _neighbours(request: Request, others: tuple[AgentAddress, ...]) -> Neighbours:
    """The other agents, and how this one shows them who it is: by the certificate that it has anyway, or a token."""
    is_encrypted = request.tls_cert is not None
    access = AgentAccess(
        token_file=request.peer_token_file,
        tls_ca=(request.peer_ca or request.client_ca) if is_encrypted else None,
        tls_cert=request.tls_cert,
        tls_key=request.tls_key,
        has_munge=request.has_munge and request.peer_token_file is None,
        munge_socket=request.munge_socket,
    )
    named = {
        "--token-file": access.token_file,
        "--tls-ca": access.tls_ca,
        "--tls-cert": access.tls_cert,
        "--tls-key": access.tls_key,
    }
    options = tuple(word for name, value in named.items() if value is not None for word in (name, str(value)))
    own_port = split_host(request.listen)[1] if request.listen else 0
    return Neighbours(
        own_name=request.node or socket.gethostname(), own_port=own_port, named=others, access=access, options=options
    )


def _notify(words: str) -> None:
    """Tells systemd, if it asks for it (sd_notify)."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            channel.sendto(words.encode(), "\0" + address[1:] if address.startswith("@") else address)
