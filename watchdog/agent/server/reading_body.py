"""The body of a request, bounded in size and time."""

import asyncio

from aiohttp import web

from pardbg.watchdog.agent.server.refused import BAD, RefusedError
from pardbg.watchdog.transport.agent_words import MOST_REQUEST_BYTES

_LARGE, _SLOW, _CODED = 413, 408, 415


async def read_body(request: web.Request, within_s: float) -> bytes:
    """All of it.

    Raises:
        RefusedError: if it is larger than `MOST_REQUEST_BYTES`, takes longer than ``within_s``, or is packed.
    """
    if request.headers.get("Content-Encoding"):
        raise RefusedError(_CODED, "a body that is packed is not unpacked", remedy="send it as it is")
    if (request.content_length or 0) > MOST_REQUEST_BYTES:
        raise _too_large()
    try:
        return await asyncio.wait_for(_read(request), within_s)
    except asyncio.TimeoutError:
        told = f"the body has not come within {within_s:g} s"
        raise RefusedError(_SLOW, told, remedy="send it at once") from None
    except (web.RequestPayloadError, ValueError) as error:
        raise RefusedError(BAD, f"the body cannot be read: {type(error).__name__}", remedy="send it whole") from error


async def _read(request: web.Request) -> bytes:
    body = bytearray()
    async for part in request.content.iter_any():
        body += part
        if len(body) > MOST_REQUEST_BYTES:
            raise _too_large()
    return bytes(body)


def _too_large() -> RefusedError:
    return RefusedError(_LARGE, f"the body is larger than {MOST_REQUEST_BYTES} bytes", remedy="ask for less at once")
