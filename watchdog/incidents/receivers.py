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


_REMEDIES = {
    ReceiverKind.WEBHOOK: "for example https://example.org/hook",
    ReceiverKind.ALERTMANAGER: "for example http://alertmanager:9093",
}


class Receiver(Noun, frozen=True, kw_only=True):
    """One of them.

    Attributes:
        url: of an Alertmanager the base, without ``/api/v2``. It may be a secret itself: it is never logged.
        token_file: what to send as ``Authorization: Bearer``; read each time, readable for its owner alone.
        ca_file: whom to trust instead of the system's authorities.
        number: which one of several of its kind, from 1; 0 if it is the only one.
    """

    kind: ReceiverKind
    url: str
    token_file: str | None = None
    ca_file: str | None = None
    number: int = 0

    @property
    def title(self) -> str:
        """What it is called for people: ``webhook``, ``webhook 2``, ``Alertmanager``."""
        kind = "Alertmanager" if self.kind is ReceiverKind.ALERTMANAGER else self.kind.value
        return f"{kind} {self.number}" if self.number else kind

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
        return f"{self.title} {parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"


def check_receiver(receiver: Receiver) -> Receiver:
    """The same, if letters can be sent there.

    Raises:
        InputError: if not: no secret of the address is in the words.
    """
    who, remedy = _who(receiver), _REMEDIES[receiver.kind]
    parts = _split(receiver)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InputError(f"the address of {who} must begin with http:// or https:// and name a host", remedy=remedy)
    if parts.username is not None or parts.password is not None:
        raise InputError(f"the address of {who} on {parts.hostname} holds a password", remedy="put a token into a file")
    if any(not character.isprintable() or character.isspace() or not character.isascii() for character in receiver.url):
        raise InputError(f"the address of {who} on {parts.hostname} holds a character that none may", remedy=remedy)
    if receiver.token_file and parts.scheme == "http" and parts.hostname not in _OWN:
        raise InputError(f"{receiver.place} would get a token that everybody on the way can read", remedy="use https://")
    return receiver


def _split(receiver: Receiver) -> SplitResult:
    try:
        parts = urlsplit(receiver.url)
        _ = parts.port
    except ValueError as error:
        raise InputError(f"the address of {_who(receiver)} is none: {error}", remedy=_REMEDIES[receiver.kind]) from error
    return parts


def _who(receiver: Receiver) -> str:
    if receiver.number:
        return receiver.title
    return f"{'an' if receiver.kind is ReceiverKind.ALERTMANAGER else 'a'} {receiver.title}"
