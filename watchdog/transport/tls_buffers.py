"""Asyncio gives every TLS connection a buffer of 256 KiB: 256 MB for a thousand agents. A record of TLS has 16 KiB at most."""

from asyncio import sslproto

_BYTES = 32 * 1024


def keep_buffers_small() -> None:
    """For all connections that are made from now on in this process."""
    sslproto.SSLProtocol.max_size = min(sslproto.SSLProtocol.max_size, _BYTES)
