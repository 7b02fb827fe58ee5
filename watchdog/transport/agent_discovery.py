"""The list of agents that somebody serves for Prometheus (http_sd): fetched once, bounded. Deadline: `WITHIN_S`."""

import asyncio
import ssl

import aiohttp

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.transport.agent_access import AgentAccess, Badge, tls_context

WITHIN_S = 10.0
MOST_BYTES = 8 * 1024**2
_OK = 200


def fetch_list(url: str, access: AgentAccess) -> str:
    """The text at a URL. Who we are is shown to nobody but an agent's own ``/sd`` over TLS.

    Raises:
        InputError: if it cannot be had.
    """
    try:
        return asyncio.run(_fetch(url, tls_context(access), _headers(url, access)))
    except (aiohttp.ClientError, OSError, ValueError, asyncio.TimeoutError) as error:
        told = f"cannot read the list of agents at {url}: {str(error) or type(error).__name__}"
        raise InputError(told, remedy="give --agents n[01-64], or a file") from error


def _headers(url: str, access: AgentAccess) -> dict[str, str]:
    return Badge(access).show("GET", "/sd", b"") if url.startswith("https://") and url.endswith("/sd") else {}


async def _fetch(url: str, tls: ssl.SSLContext, headers: dict[str, str]) -> str:
    timeout = aiohttp.ClientTimeout(total=WITHIN_S)
    async with (
        aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as session,
        session.get(url, headers=headers, allow_redirects=False, ssl=tls) as response,
    ):
        if response.status != _OK:
            raise ValueError(f"status {response.status}")
        body = bytearray()
        async for part in response.content.iter_any():
            body += part
            if len(body) > MOST_BYTES:
                raise ValueError(f"more than {MOST_BYTES} bytes")
        return body.decode("utf-8")
