"""The options of `pardbg agent`, and the parts of an agent as they ask for them."""

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pardbg.watchdog.agent.company import Neighbours
from pardbg.watchdog.agent.named_files import check_authorities, check_token
from pardbg.watchdog.agent.quiet import Limits
from pardbg.watchdog.agent.server.options import KubernetesOptions, ServerOptions, split_host
from pardbg.watchdog.agent.settings import Settings, usual_state_folder
from pardbg.watchdog.incidents.receivers import Receiver, ReceiverKind, check_receiver
from pardbg.watchdog.scan.nodes.through_agents import read_agents
from pardbg.watchdog.transport.agent_access import AgentAccess
from pardbg.watchdog.transport.agent_addresses import AgentAddress

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


def settings_of(request: Request) -> Settings:
    """How it watches."""
    return Settings(
        node=request.node,
        limits=Limits(floor_s=request.floor_s, cap_s=max(request.cap_s, request.floor_s)),
        attach=request.attach,
    )


def server_options_of(request: Request) -> ServerOptions:
    """How it listens.

    Raises:
        InputError: if what shows it to other agents cannot be used.
    """
    if request.peer_token_file is not None:
        check_token(request.peer_token_file, "the token of --peer-token-file")
    if request.peer_ca is not None:
        check_authorities(request.peer_ca, "--peer-ca")
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
        peers=_peers(request),
        node=request.node,
    )


def receivers_of(request: Request) -> tuple[Receiver, ...]:
    """Who is told of incidents.

    Raises:
        InputError: if an address is none, or the token cannot be used.
    """
    token_file = request.webhook_token_file
    if token_file is not None:
        check_token(token_file, "the token of --webhook-token-file")
    return (
        *_numbered(ReceiverKind.WEBHOOK, request.webhooks, str(token_file) if token_file else None),
        *_numbered(ReceiverKind.ALERTMANAGER, request.alertmanagers),
    )


def _numbered(kind: ReceiverKind, urls: tuple[str, ...], token_file: str | None = None) -> tuple[Receiver, ...]:
    """Several on one host are told apart by their place on the command line."""
    made = [
        Receiver(kind=kind, url=url, token_file=token_file, number=number if len(urls) > 1 else 0)
        for number, url in enumerate(urls, 1)
    ]
    return tuple(map(check_receiver, made))


def _others(request: Request) -> Callable[[], tuple[AgentAddress, ...]]:
    """Finds the agents that the site names: now, to see that the list is one, and whenever it matters."""
    if not request.agents:
        return tuple

    def find() -> tuple[AgentAddress, ...]:
        return read_agents(request.agents, _access(request))

    if not request.agents.startswith(("dns:", "http")):  # those may not be there yet
        find()
    return find


def _peers(request: Request) -> tuple[str, ...]:
    """The other agents as Prometheus is told of them; what changes by itself is for Prometheus to find out."""
    if request.agents.startswith(("dns:", "http")):
        return ()
    return tuple(address.netloc for address in _others(request)())


def _access(request: Request) -> AgentAccess:
    """How this agent shows others who it is: by the certificate that it has anyway, or a token."""
    is_encrypted = request.tls_cert is not None
    name = request.agents.removeprefix("dns:").partition(":")[0] if request.agents.startswith("dns:") else None
    return AgentAccess(
        token_file=request.peer_token_file,
        tls_ca=(request.peer_ca or request.client_ca) if is_encrypted else None,
        tls_cert=request.tls_cert,
        tls_key=request.tls_key,
        tls_name=name if is_encrypted else None,
        has_munge=request.has_munge and request.peer_token_file is None,
        munge_socket=request.munge_socket,
    )


def neighbours_of(request: Request, own_socket: Callable[[], str]) -> Neighbours:
    """The other agents. ``own_socket``: see `Neighbours`."""
    access = _access(request)
    named = {
        "--token-file": access.token_file,
        "--tls-ca": access.tls_ca,
        "--tls-cert": access.tls_cert,
        "--tls-key": access.tls_key,
        "--tls-name": access.tls_name,
    }
    options = tuple(word for name, value in named.items() if value is not None for word in (name, str(value)))
    own_port = split_host(request.listen)[1] if request.listen else 0
    return Neighbours(
        own_name=request.node or socket.gethostname(),
        own_port=own_port,
        site=_others(request),
        access=access,
        options=options,
        socket=own_socket,
    )
