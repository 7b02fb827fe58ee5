"""How this user shows agents who he is, and how he knows that they are agents."""

import ssl
from dataclasses import dataclass
from pathlib import Path

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.transport.agent_addresses import AgentAddress
from pardbg.watchdog.transport.munge import is_here, make_credential, words_of
from pardbg.watchdog.transport.private_file import read_private


@dataclass(frozen=True, kw_only=True)
class AgentAccess:
    """What the command line says of it.

    Attributes:
        token_file: holds a bearer token.
        tls_ca: who has signed the agents' certificates; the system's if None.
        tls_cert: the user's own certificate, with ``tls_key``.
        tls_name: the name in the agents' certificates, where it is not that of their hosts.
        has_munge: whether to make munge credentials; None: if there is no other way, and munge is here.
        munge_socket: of munged, if it is not the usual one.
    """

    token_file: Path | None = None
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_name: str | None = None
    has_munge: bool | None = None
    munge_socket: str = ""

    @property
    def uses_munge(self) -> bool:
        """Whether requests carry munge credentials."""
        if self.has_munge is not None:
            return self.has_munge
        return self.token_file is None and self.tls_cert is None and is_here(self.munge_socket)

    def is_encrypted(self, address: AgentAddress) -> bool:
        """Whether an agent is spoken to by TLS: all beyond this machine are."""
        if address.socket:
            return False
        return not address.is_here or self.tls_ca is not None or self.tls_cert is not None


def tls_context(access: AgentAccess) -> ssl.SSLContext:
    """For connections to agents.

    Raises:
        InputError: if a file of it cannot be used.
    """
    if access.tls_key is not None:
        read_private(access.tls_key, "the key of --tls-key")
    try:
        context = ssl.create_default_context(cafile=access.tls_ca)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if access.tls_cert is not None:
            context.load_cert_chain(access.tls_cert, access.tls_key)
    except (OSError, ssl.SSLError) as error:
        named = ", ".join(str(path) for path in (access.tls_ca, access.tls_cert, access.tls_key) if path is not None)
        told = f"cannot use {named}: {error.strerror or error}"
        raise InputError(told, remedy="give PEM files; --tls-key belongs to --tls-cert") from error
    return context


class Badge:
    """Makes the ``Authorization`` of requests."""

    def __init__(self, access: AgentAccess) -> None:
        """Reads the token.

        Raises:
            InputError: if its file cannot be used.
        """
        self._access = access
        self._token = _read_token(access.token_file) if access.token_file is not None else ""

    def show(self, method: str, path: str, body: bytes) -> dict[str, str]:
        """The headers of one request. A munge credential is good for one request to each agent.

        Raises:
            MungeError: if munge gives none.
        """
        if self._token:
            return {"Authorization": f"Bearer {self._token}"}
        if self._access.uses_munge:
            return {"Authorization": f"Munge {make_credential(words_of(method, path, body), self._access.munge_socket)}"}
        return {}


def _read_token(path: Path) -> str:
    token = read_private(path, "the token of --token-file").decode("utf-8", "replace").strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise InputError(f"{path} holds no token", remedy="write the token into it, and nothing else")
    return token
