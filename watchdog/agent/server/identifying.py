"""Who asks: by the socket, a token, a munge credential, Kubernetes, or a certificate. Nobody is anybody by default."""

import asyncio
import socket
import struct

from aiohttp import web

from pardbg.watchdog.agent.server.credentials import Credentials
from pardbg.watchdog.agent.server.kubernetes import Kubernetes
from pardbg.watchdog.agent.server.options import ServerOptions, split_host
from pardbg.watchdog.agent.server.people import People, is_anybody
from pardbg.watchdog.agent.server.refused import FORBIDDEN, UNAUTHENTICATED, RefusedError
from pardbg.watchdog.agent.server.requester import Requester
from pardbg.watchdog.agent.server.tokens import Tokens
from pardbg.watchdog.transport.munge import words_of

_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid
_LONGEST = 16 * 1024


class Identifier:
    """Tells who asks. Each way may be missing."""

    def __init__(
        self,
        people: People,
        *,
        options: ServerOptions | None = None,
        tokens: Tokens | None = None,
        credentials: Credentials | None = None,
        kubernetes: Kubernetes | None = None,
    ) -> None:
        """Of the options: who has the certificate of a peer sees what an admin sees; and what strangers can do instead."""
        self._people, self._options = people, options or ServerOptions()
        self._peers = frozenset(split_host(peer)[0] for peer in self._options.peers)
        self._tokens, self._credentials, self._kubernetes = tokens, credentials, kubernetes

    async def identify(self, request: web.Request) -> Requester:
        """Who has sent a request. What he shows counts before how he has come.

        Raises:
            RefusedError: if it cannot be told.
        """
        if request.transport is not None and (uid := peer_uid(request.transport)) is not None:
            if is_anybody(uid):
                raise RefusedError(FORBIDDEN, "your user has no number here: you are in another user namespace")
            return await self._user(uid, f"uid {uid} (socket)")
        shown = request.headers.getall("Authorization", [])
        if len(shown) > 1 or any(len(text) > _LONGEST for text in shown):
            raise RefusedError(UNAUTHENTICATED, "not one Authorization, but several, or too long a one", remedy="show one")
        if shown:
            scheme, _, rest = shown[0].strip().partition(" ")
            return await self._by_header(scheme.lower(), rest.strip())
        names = certified_names(request)
        if (peer := next((name for name in names if name in self._peers), None)) is not None:
            return Requester(name=f"agent {peer} (certificate)", is_admin=True)
        if names and names[0]:
            return await self._by_certificate(names[0])
        raise RefusedError(UNAUTHENTICATED, "nobody knows who asks", remedy=self._remedy())

    async def _by_header(self, scheme: str, shown: str) -> Requester:
        if scheme == "munge" and self._credentials is not None:
            uid, words = await self._credentials.decode(shown)
            return await self._user(uid, f"uid {uid} (munge)", words)
        if scheme == "bearer" and (found := await self._by_token(shown)) is not None:
            return found
        raise RefusedError(UNAUTHENTICATED, f"this agent knows no such {scheme[:20]!r} credential", remedy=self._remedy())

    async def _by_token(self, shown: str) -> Requester | None:
        if self._tokens is not None and (token := self._tokens.find(shown)) is not None:
            is_admin = token.uid is None or token.uid == 0
            return Requester(name=token.name, uid=token.uid, is_admin=is_admin, may_look=token.may_look)
        if self._kubernetes is not None and (user := await self._kubernetes.whose(shown)) is not None:
            return Requester(name=f"{user.username} (kubernetes)", kubernetes=user)
        return None

    async def _by_certificate(self, name: str) -> Requester:
        uid = await self._people.uid_of(name)
        if uid is None:
            raise RefusedError(UNAUTHENTICATED, f"the certificate is of {name[:80]!r}, who is no user of this machine")
        return await self._user(uid, f"uid {uid} (certificate of {name[:80]})")

    async def _user(self, uid: int, name: str, words: str = "") -> Requester:
        return Requester(name=name, uid=uid, is_admin=await self._people.is_admin(uid), words=words)

    def _remedy(self) -> str:
        """Only what this agent offers."""
        options = self._options
        ways = [
            *([f"ask by its socket (--agents {options.socket})"] if options.socket and options.is_local else []),
            *(["show a certificate that its --client-ca has signed (--tls-cert)"] if options.client_ca else []),
            *(["show a token (--token-file)"] if self._tokens or self._kubernetes else []),
            *(["show a munge credential (--munge)"] if self._credentials else []),
        ]
        return ", or ".join(ways) or "start the agent with --socket or --tokens: it knows nobody so far"


def confirm(requester: Requester, method: str, path: str, body: bytes) -> None:
    """A munge credential is for one request.

    Raises:
        RefusedError: if it was made for another one.
    """
    if requester.words and requester.words != words_of(method, path, body):
        raise RefusedError(UNAUTHENTICATED, "the munge credential was made for another request", remedy="make one for this")


def peer_uid(transport: asyncio.BaseTransport) -> int | None:
    """Who is at the other end of a unix socket, as the kernel says; None for other connections."""
    end = transport.get_extra_info("socket")
    if end is None or end.family != socket.AF_UNIX:
        return None
    _, uid, _ = _CREDENTIALS.unpack(end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(uid)


def certified_names(request: web.Request) -> tuple[str, ...]:
    """Of a client's certificate that the handshake has verified: its one common name, or an empty text; then those of hosts."""
    certificate = request.transport.get_extra_info("peercert") if request.transport is not None else None
    if not certificate:
        return ()
    parts = [part for name in certificate.get("subject", ()) for part in name]
    common = [value for key, value in parts if key == "commonName"]
    hosts = [value for kind, value in certificate.get("subjectAltName", ()) if kind in {"DNS", "IP Address"}]
    return (common[0] if len(common) == 1 else "", *hosts)
