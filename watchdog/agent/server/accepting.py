"""Listening sockets that remember whom they have let in, so that a handshake that fails can be told with its address.

Asyncio tells a protocol of its connection only after the handshake; the task that it begins for each connection inherits what
is remembered here.
"""

import asyncio
import os
import socket
from contextvars import ContextVar
from typing import Any

PEER: ContextVar[str] = ContextVar("PEER", default="somebody")
"""The address of the connection that is being handled."""


class _Remembering(socket.socket):
    def accept(self) -> tuple[socket.socket, Any]:
        end, address = super().accept()
        PEER.set(str(address[0]))
        return end, address


async def open_ports(host: str, port: int, backlog: int) -> list[socket.socket]:
    """One socket for each address of the host, listening, as `asyncio.loop.create_server` makes them.

    Raises:
        OSError: if one cannot be had; none stays open.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    opened: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            one = _Remembering(family, kind, protocol)
            opened.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(address)
            one.listen(backlog)
    except OSError as error:
        for end in opened:
            end.close()
        raise OSError(error.errno, os.strerror(error.errno) if error.errno else str(error)) from error
    return opened
