"""One HTTP POST of JSON, and what its answer means. Standard library alone.

`http.client` and not urllib: it asks no environment for proxies and follows no redirect, which would turn a POST into a GET.
Cost: a connection each time; it lasts `LONGEST_S` at most, besides looking up the name. A redirect is a refusal.
"""

import contextlib
import http.client
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from enum import Enum
from urllib.parse import urlsplit

from pardbg import __version__
from pardbg.watchdog.incidents.receivers import Receiver
from pardbg.watchdog.incidents.tokens import TokenError, read_token
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.text import printable_text

STEP_S = 10.0
LONGEST_S = 20.0
_MOST_REASON, _MOST_READ = 200, 4096
"""More is read than shown: what is cut off could not be recognised."""
_SIGNS, _SHORTEST_SECRET = re.compile(r"[/?&=]"), 8
_PATIENT = frozenset({408, 425, 429})
"""Of 4xx: it may take the same letter later."""


class Outcome(Enum):
    """What became of a letter."""

    TAKEN = "taken"
    LATER = "later"
    REFUSED = "refused"


class Answer(Noun, frozen=True, kw_only=True):
    """``words`` say why it was not taken; ``wait_s`` is what the receiver asked for, seconds."""

    outcome: Outcome
    words: str = ""
    wait_s: float = 0.0


def post(receiver: Receiver, body: str, key: str, *, longest_s: float = LONGEST_S) -> Answer:
    """Sends a letter. ``key`` tells the receiver that it is the same letter as before."""
    token = ""
    try:
        token = read_token(receiver.token_file) if receiver.token_file else ""
        return _exchange(receiver, body.encode("ascii"), _headers(key, token), longest_s)
    except TokenError as error:
        return Answer(outcome=Outcome.LATER, words=f"{receiver.place}: {error}")
    except ssl.SSLCertVerificationError as error:
        return Answer(outcome=Outcome.LATER, words=f"{receiver.place}: its certificate is not trusted: {error.verify_message}")
    except (OSError, http.client.HTTPException, ValueError) as error:
        told = "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        return Answer(outcome=Outcome.LATER, words=f"{receiver.place}: {_reason(told, _secrets(receiver, token))}")


def _headers(key: str, token: str) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "User-Agent": f"pardbg/{__version__}", "Idempotency-Key": key}
    return {**headers, "Connection": "close", **({"Authorization": f"Bearer {token}"} if token else {})}


def _exchange(receiver: Receiver, body: bytes, headers: dict[str, str], longest_s: float) -> Answer:
    parts = urlsplit(receiver.address)
    target = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    with contextlib.closing(_connection(receiver)) as connection, _ended_after(connection, longest_s):
        connection.request("POST", target, body, headers)
        response = connection.getresponse()
        said = response.read(_MOST_READ).decode("utf-8", "replace")
        return _meaning(receiver, response, _reason(said, _secrets(receiver, headers.get("Authorization", ""))))


def _connection(receiver: Receiver) -> http.client.HTTPConnection:
    parts = urlsplit(receiver.address)
    if parts.scheme == "http":
        return http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=STEP_S)
    trust = ssl.create_default_context(cafile=receiver.ca_file)
    return http.client.HTTPSConnection(str(parts.hostname), parts.port, timeout=STEP_S, context=trust)


def _meaning(receiver: Receiver, response: http.client.HTTPResponse, said: str) -> Answer:
    status = response.status
    if 200 <= status < 300:
        return Answer(outcome=Outcome.TAKEN)
    words = f"{receiver.place} answers {status}{f': {said}' if said else ''}"
    if status >= 500 or status in _PATIENT:
        return Answer(outcome=Outcome.LATER, words=words, wait_s=_asked_for(response.getheader("Retry-After")))
    return Answer(outcome=Outcome.REFUSED, words=words)


def _asked_for(header: str | None) -> float:
    return float(header) if header and header.isascii() and header.isdigit() and len(header) < 6 else 0.0


def _secrets(receiver: Receiver, shown: str) -> tuple[str, ...]:
    """The words of what we show, and what may be a secret in the path of the address."""
    parts = urlsplit(receiver.address)
    long = (part for part in _SIGNS.split(f"{parts.path}?{parts.query}") if len(part) >= _SHORTEST_SECRET)
    return *shown.split(), *long


def _reason(said: str, secrets: tuple[str, ...]) -> str:
    """What may be shown of an answer: one line, and not our token or the path of our address, which some servers repeat."""
    for word in sorted(secrets, key=len, reverse=True):
        said = said.replace(word, "***")
    return printable_text(" ".join(said.split()))[:_MOST_REASON]


@contextlib.contextmanager
def _ended_after(connection: http.client.HTTPConnection, longest_s: float) -> Iterator[None]:
    """A receiver that sends a byte now and then keeps every step's deadline; this one it does not.

    Raises:
        TimeoutError: whatever was understood of an answer that was cut short.
    """
    is_over = threading.Event()

    def end() -> None:
        is_over.set()
        if isinstance(connection.sock, socket.socket):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)  # not TLS's own, which another thread is using

    timer = threading.Timer(longest_s, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if is_over.is_set():
        raise TimeoutError
