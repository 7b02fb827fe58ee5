"""Answers that are some: msgpack or JSON, packed for those who accept that."""

import msgspec
from aiohttp import web

from pardbg.watchdog.transport.agent_words import DEFLATE, JSON, MSGPACK
from pardbg.watchdog.transport.lines import pack


def reply_bytes(request: web.Request, data: bytes, content_type: str = MSGPACK) -> web.Response:
    """The answer of these bytes."""
    headers = {"Cache-Control": "no-store"}
    if DEFLATE in request.headers.get("Accept-Encoding", "") and data:
        data = pack(data)
        headers["Content-Encoding"] = DEFLATE
    return web.Response(body=data, content_type=content_type, headers=headers)


def reply_json(request: web.Request, value: object) -> web.Response:
    """A noun, or several, as JSON."""
    return reply_bytes(request, msgspec.json.encode(value), JSON)
