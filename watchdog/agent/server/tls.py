"""The agent's side of TLS. A certificate that is shown is verified; whether one is needed is for `identifying.py` to say.

So a client without one gets an answer that says what is missing; one with a wrong one fails in the handshake, which is noted.
"""

import ssl
from collections.abc import Callable

from pardbg.watchdog.agent.server.options import ServerOptions
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.transport.private_file import read_private
from pardbg.watchdog.transport.tls_buffers import keep_buffers_small

_SILENT = frozenset({"HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "WRONG_VERSION_NUMBER"})
"""Failures without an alert: what has come is no TLS at all. There is nothing to send first."""
_WANTING = (ssl.SSLWantReadError, ssl.SSLWantWriteError, ssl.SSLSyscallError, ssl.SSLEOFError, ssl.SSLZeroReturnError)


def server_context(options: ServerOptions, tell: Callable[[str], None]) -> ssl.SSLContext | None:
    """The context of the port; None where it speaks plain HTTP.

    Args:
        options: with the files.
        tell: is told of handshakes that fail, in a line.

    Raises:
        InputError: if a file cannot be used.
    """
    if options.tls_cert is None or options.tls_key is None:
        return None
    read_private(options.tls_key, "the key of --tls-key")
    keep_buffers_small()
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(options.tls_cert, options.tls_key)
        if options.client_ca is not None:
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_verify_locations(options.client_ca)
    except (OSError, ssl.SSLError) as error:
        named = ", ".join(str(path) for path in (options.tls_cert, options.tls_key, options.client_ca) if path is not None)
        raise InputError(
            f"cannot use {named}: {error.strerror or error}", remedy="give PEM files that belong together"
        ) from error
    context.sslobject_class = _telling(tell)
    return context


def _telling(tell: Callable[[str], None]) -> type[ssl.SSLObject]:
    """Asyncio keeps to itself why a handshake has failed, and does not send the alert that tells the client."""

    class Telling(ssl.SSLObject):
        _has_failed = False

        def do_handshake(self) -> None:
            try:
                super().do_handshake()
            except _WANTING:
                raise
            except ssl.SSLError as error:
                if self._has_failed:
                    raise
                self._has_failed = True
                if error.reason in _SILENT:
                    tell(f"no TLS: {error.reason.replace('_', ' ').lower()}")
                    raise
                tell(getattr(error, "verify_message", "") or (error.reason or "no TLS").replace("_", " ").lower())
                raise ssl.SSLWantReadError from error  # so that what has been written, the alert, is sent first

    return Telling
