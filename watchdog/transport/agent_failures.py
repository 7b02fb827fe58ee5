"""Why an agent could not be spoken to, of what the client has raised. Pure."""

import asyncio
import ssl

import aiohttp

from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.agent_addresses import AgentAddress
from pardbg.watchdog.transport.munge import MungeError
from pardbg.watchdog.transport.printable import printable

_DEEPEST = 4
_CLOSED = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)

_MEANINGS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], AbsenceReason, str], ...] = (
    (aiohttp.ConnectionTimeoutError, AbsenceReason.UNREACHABLE, "{where} does not take a connection in time"),
    (asyncio.TimeoutError, AbsenceReason.TIMED_OUT, "the agent at {where} has not answered in time"),
    (aiohttp.ClientConnectorDNSError, AbsenceReason.UNREACHABLE, "{where} has no address here: {why}"),
    (PermissionError, AbsenceReason.DENIED, "{where} may not be connected to: {why}"),
    (aiohttp.ServerDisconnectedError, AbsenceReason.UNREACHABLE, "{where} has closed the connection without an answer"),
    (
        (aiohttp.ClientPayloadError, aiohttp.ClientResponseError, ValueError, LookupError),
        AbsenceReason.UNREADABLE,
        "what {where} answers is not HTTP that can be read: {kind}",
    ),
)
"""The first that fits."""


def explain_failure(error: BaseException, address: AgentAddress, *, is_plain: bool = False) -> tuple[AbsenceReason, str]:
    """The true reason, as far as it can be told. ``is_plain``: it was spoken to by a port, and not by TLS."""
    where = address.socket or address.netloc
    if isinstance(error, MungeError):
        return AbsenceReason.DENIED, f"not asked: {error}; {error.remedy}"
    if (refusal := _explain_tls(error, where)) is not None:
        return refusal
    if is_plain and isinstance(error, _CLOSED) and not isinstance(error, aiohttp.ClientConnectorError):
        told = "has closed the connection without an answer; if the agent speaks TLS: --tls-ca"
        return AbsenceReason.UNREACHABLE, f"{where} {told}"
    for kinds, reason, words in _MEANINGS:
        if isinstance(error, kinds) or isinstance(getattr(error, "os_error", None), kinds):
            return reason, words.format(where=where, why=_words(error), kind=type(error).__name__)
    return AbsenceReason.UNREACHABLE, f"no agent at {where}: {_words(error)}"


def _explain_tls(error: BaseException, where: str) -> tuple[AbsenceReason, str] | None:
    found = _find_tls_error(error)
    if found is None:
        return None
    if isinstance(found, ssl.SSLCertVerificationError):
        words = printable(found.verify_message or str(found))
        return AbsenceReason.DENIED, f"the certificate of {where} is not to be trusted: {words} (see --tls-ca, --tls-name)"
    words = printable((found.reason or str(found)).replace("_", " ").lower())
    if "alert" in words and ("ca" in words.split() or "certificate" in words):
        return AbsenceReason.DENIED, f"the agent at {where} refuses our certificate: {words} (see --tls-cert)"
    return AbsenceReason.UNREADABLE, f"what answers at {where} does not speak TLS as agents do: {words}"


def _find_tls_error(error: BaseException) -> ssl.SSLError | None:
    """The innermost: aiohttp wraps it in what is called so, too."""
    found = error if isinstance(error, ssl.SSLError) else None
    for _ in range(_DEEPEST):
        inner = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error.__cause__
        if not isinstance(inner, BaseException):
            break
        error = inner
        found = error if isinstance(error, ssl.SSLError) else found
    return found


def _words(error: BaseException) -> str:
    inner = getattr(error, "os_error", None) or error
    told = getattr(inner, "strerror", None) or str(inner) or type(error).__name__
    return printable(str(told))
