"""Who is told of incidents: webhooks and Alertmanagers, by their addresses."""

import hashlib
from enum import Enum
from urllib.parse import SplitResult, urlsplit

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.base import Noun

_OWN = frozenset({"localhost", "127.0.0.1", "::1"})


class ReceiverKind(str, Enum):
    """What it understands."""

    WEBHOOK = "webhook"
    ALERTMANAGER = "alertmanager"


class Receiver(Noun, frozen=True, kw_only=True):
    """One of them.

    Attributes:
        url: of an Alertmanager the base, without ``/api/v2``. It may be a secret itself: it is never logged.
        token_file: what to send as ``Authorization: Bearer``; read each time, readable for its owner alone.
        ca_file: whom to trust instead of the system's authorities.
    """

    kind: ReceiverKind
    url: str
    token_file: str | None = None
    ca_file: str | None = None

    @property
    def name(self) -> str:
        """The same as long as the address is; it says nothing of it."""
        return f"{self.kind.value}-{hashlib.blake2b(self.address.encode(), digest_size=4).hexdigest()}"

    @property
    def address(self) -> str:
        """Where letters go."""
        return f"{self.url.rstrip('/')}/api/v2/alerts" if self.kind is ReceiverKind.ALERTMANAGER else self.url

    @property
    def place(self) -> str:
        """What may be shown of the address: no path, for there may be a secret in it."""
        parts = urlsplit(self.url)
        return f"{self.kind.value} {parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"


def check_receiver(receiver: Receiver) -> Receiver:
    """The same, if letters can be sent there.

    Raises:
        InputError: if not: no secret of the address is in the words.
    """
    kind = receiver.kind.value
    parts = _split(receiver.url, kind)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InputError(f"the address of a {kind} must begin with http:// or https:// and name a host", remedy=_remedy(kind))
    if parts.username is not None or parts.password is not None:
        raise InputError(f"the address of the {kind} on {parts.hostname} holds a password", remedy="put a token into a file")
    if any(not character.isprintable() or character.isspace() or not character.isascii() for character in receiver.url):
        raise InputError(f"the address of the {kind} on {parts.hostname} holds a character that none may", remedy=_remedy(kind))
    if receiver.token_file and parts.scheme == "http" and parts.hostname not in _OWN:
        raise InputError(f"{receiver.place} would get a token that everybody on the way can read", remedy="use https://")
    return receiver


def _split(url: str, kind: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise InputError(f"the address of a {kind} is none: {error}", remedy=_remedy(kind)) from error
    return parts


def _remedy(kind: str) -> str:
    return f"for example {'http://alertmanager:9093' if kind == 'alertmanager' else 'https://example.org/hook'}"
