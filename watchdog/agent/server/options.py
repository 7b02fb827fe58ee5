"""How the server is to listen, and whom it believes."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.transport.agent_addresses import USUAL_PORT, is_loopback

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_LARGEST_PORT = 65535


@dataclass(frozen=True, kw_only=True)
class KubernetesOptions:
    """The API server that is asked who a token belongs to, and what he may do.

    Attributes:
        api: its URL.
        token_file: the agent's own token, read anew for every question: Kubernetes changes it.
        ca_file: who has signed the API server's certificate; None for the system's.
        audiences: for whom tokens must have been made; the API server's own if empty.
        within_s: how long it may take to answer, seconds.
    """

    api: str
    token_file: Path = _ACCOUNT / "token"
    ca_file: Path | None = _ACCOUNT / "ca.crt"
    audiences: tuple[str, ...] = ()
    within_s: float = 5.0


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """What does not change while it runs.

    Attributes:
        listen: ``HOST:PORT``, or empty for no port.
        socket: path of the unix socket for people on this machine; None for none.
        tls_cert: the agent's certificate, with ``tls_key``.
        client_ca: who signs the certificates of users, whose common name is the user's name.
        tokens: file of bearer tokens, see `tokens.py`.
        has_munge: whether munge credentials count; ``munge_socket``: of munged, if it is not the usual one.
        admin_group: the group whose members may see everything, empty for none.
        kubernetes: see `KubernetesOptions`; None where there is none.
        opens_metrics: whether everybody may read the page of metrics, also beyond this machine.
        may_attach: whether a look may attach to ranks: only if the site says so.
        peers: ``HOST:PORT`` of the other agents, for service discovery; a client certificate of one of them is an admin's.
        name: ``HOST`` of this agent there.
        node: this machine's name among the nodes of a job, empty for its own.
        most_connections: at once; ``most_from_one`` of them from one address.
        patience_s: how long a handshake, the first request of a connection and a body may take, seconds.
    """

    listen: str = f"127.0.0.1:{USUAL_PORT}"
    socket: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    client_ca: Path | None = None
    tokens: Path | None = None
    has_munge: bool = False
    munge_socket: str = ""
    admin_group: str = ""
    kubernetes: KubernetesOptions | None = None
    opens_metrics: bool = False
    may_attach: bool = False
    peers: tuple[str, ...] = ()
    name: str = field(default_factory=lambda: os.uname().nodename)
    node: str = ""
    most_connections: int = 512
    most_from_one: int = 64
    patience_s: float = 10.0

    @property
    def host(self) -> str:
        """The host of ``listen``."""
        return split_host(self.listen)[0]

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return not self.listen or is_loopback(self.host)

    @property
    def is_encrypted(self) -> bool:
        """Whether the port speaks TLS."""
        return self.tls_cert is not None

    def check(self) -> None:
        """Refuses what would not be safe.

        Raises:
            InputError: if so.
        """
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InputError("--tls-cert and --tls-key belong together", remedy="give both, or neither")
        if self.client_ca is not None and self.tls_cert is None:
            raise InputError("--client-ca without --tls-cert: certificates are shown over TLS only", remedy="give --tls-cert")
        if self.is_local:
            return
        knows_who = self.client_ca or self.tokens or self.has_munge or self.kubernetes
        if self.tls_cert is None or not knows_who:
            missing = "TLS" if self.tls_cert is None else "a way to tell who asks"
            told = f"refusing to listen on {self.listen}, beyond this machine, without {missing}"
            remedy = "give --tls-cert and --tls-key, and --client-ca or --tokens; or listen on 127.0.0.1"
            raise InputError(told, remedy=remedy)


def join_host(host: str, port: int) -> str:
    """``HOST:PORT``, as `split_host` reads it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_host(text: str) -> tuple[str, int]:
    """``HOST:PORT``, ``[::1]:PORT`` or ``HOST``.

    Raises:
        InputError: if it is none.
    """
    host, has_port, port = text.rpartition(":")
    if not has_port or text.endswith("]") or (":" in host and not host.startswith("[")):
        host, port = text, str(USUAL_PORT)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdecimal() or int(port) > _LARGEST_PORT:
        raise InputError(f"cannot listen on {text!r}", remedy=f"write HOST:PORT, e.g. 127.0.0.1:{USUAL_PORT}")
    return host, int(port)
