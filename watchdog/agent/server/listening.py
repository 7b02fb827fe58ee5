"""The places where the server listens: a port, and a unix socket for the people of this machine."""

import asyncio
import errno
import os
import socket
import ssl
import stat
from pathlib import Path

from pardbg.watchdog.agent.server.accepting import open_ports
from pardbg.watchdog.agent.server.connections import Connections
from pardbg.watchdog.agent.server.options import ServerOptions, join_host, split_host
from pardbg.watchdog.errors import InputError

_FOR_ALL, _FOR_US = 0o666, 0o600
_BACKLOG = 256


async def listen(options: ServerOptions, connections: Connections, tls: ssl.SSLContext | None) -> list[asyncio.Server]:
    """Opens them.

    Raises:
        InputError: if one cannot be had.
    """
    loop = asyncio.get_running_loop()
    servers: list[asyncio.Server] = []
    if options.listen:
        host, port = split_host(options.listen)
        handshake_s = options.patience_s if tls is not None else None
        try:
            ends = await open_ports(host, port, _BACKLOG)
            servers += [
                await loop.create_server(connections, sock=end, ssl=tls, ssl_handshake_timeout=handshake_s, backlog=_BACKLOG)
                for end in ends
            ]
        except OSError as error:
            told = f"cannot listen on {options.listen}: {os.strerror(error.errno) if error.errno else error}"
            remedy = "give --listen HOST:PORT; another agent may run: pardbg incidents list"
            raise InputError(told, remedy=remedy) from error
    if options.socket is not None:
        try:
            servers.append(await loop.create_unix_server(connections, sock=_open_socket(options.socket), backlog=_BACKLOG))
        except OSError as error:
            for server in servers:
                server.close()
            told = f"cannot listen on {options.socket}: {error.strerror or error}"
            raise InputError(told, remedy="give --socket PATH in a folder of yours, at most 100 characters long") from error
    return servers


def _open_socket(path: Path) -> socket.socket:
    """Root's is for everybody, since the kernel says who comes; a user's for him. What an ended agent has left is replaced."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    _clear(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(str(path))
        path.chmod(_FOR_ALL if os.geteuid() == 0 else _FOR_US)
    except OSError:
        listening.close()
        raise
    return listening


def _clear(path: Path) -> None:
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if not is_socket:
        raise FileExistsError(errno.EEXIST, "something that is no socket is there")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
        try:
            trial.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
        else:
            raise OSError(errno.EADDRINUSE, "another agent listens there")


def ports_of(servers: list[asyncio.Server]) -> tuple[int, ...]:
    """The ports that they have been given."""
    names = [end.getsockname() for server in servers for end in server.sockets]
    return tuple(name[1] for name in names if isinstance(name, tuple))


def places_of(options: ServerOptions, ports: tuple[int, ...]) -> str:
    """Where they listen, in words."""
    port = [join_host(options.host, ports[0])] if options.listen and ports else []
    return " and ".join([*port, *([str(options.socket)] if options.socket is not None else [])])


def forget_socket(options: ServerOptions) -> None:
    """Removes the socket's name."""
    if options.socket is not None:
        options.socket.unlink(missing_ok=True)
