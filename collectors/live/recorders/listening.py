"""On which socket a server's thread waits, from lines of `/proc`: pure parsing."""

import socket
import struct

from pardbg.watchdog.model.base import Noun

_ACCEPT_CALLS = {"x86_64": ("43", "288"), "aarch64": ("202", "242")}  # accept, accept4
_IS_LISTENING = 0x10000  # of the flags in /proc/net/unix
_LISTENING_STATE = "0A"
_TCP_FIELDS = 10
_IPV6_DIGITS = 32


class UnixAddress(Noun, frozen=True, kw_only=True):
    """A socket in the file system, as the server named it: the name may be relative to the server's folder.

    ``root`` is a handle of the root at which the name begins, of a server in another mount namespace.
    """

    path: bytes
    root: int | None = None


class TcpAddress(Noun, frozen=True, kw_only=True):
    """A listening TCP socket; ``host`` is the address it is bound to, of which ``::`` and ``0.0.0.0`` mean all."""

    host: str
    port: int


def parse_accepting(text: str, machine: str) -> int | None:
    """The descriptor that a thread waits on for connections, None if it does something else.

    Args:
        text: of ``/proc/PID/task/TID/syscall``: the number of the call and its arguments, or ``running``.
        machine: as ``uname -m`` says; the numbers differ.
    """
    fields = text.split()
    if len(fields) < 2 or fields[0] not in _ACCEPT_CALLS.get(machine, ()):
        return None
    return int(fields[1], 16)


def parse_socket_inode(link: str) -> int | None:
    """The socket behind an entry of ``/proc/PID/fd``: ``socket:[4711]``."""
    number = link.removeprefix("socket:[").removesuffix("]")
    return int(number) if link.startswith("socket:[") and number.isdecimal() else None


def find_unix_listener(table: bytes, inode: int) -> UnixAddress | None:
    """Looks a listening socket up in ``/proc/PID/net/unix``. One without a name in the file system is None."""
    for line in table.splitlines()[1:]:
        fields = line.split(maxsplit=7)
        if len(fields) == 8 and fields[6] == b"%d" % inode and int(fields[3], 16) & _IS_LISTENING:
            return None if fields[7].startswith(b"@") else UnixAddress(path=fields[7])
    return None


def find_tcp_listener(table: str, inode: int) -> TcpAddress | None:
    """Looks a listening socket up in ``/proc/PID/net/tcp`` or ``tcp6``."""
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) >= _TCP_FIELDS and fields[9] == str(inode) and fields[3] == _LISTENING_STATE:
            address, _, port = fields[1].partition(":")
            return TcpAddress(host=_decode_address(address), port=int(port, 16))
    return None


def _decode_address(digits: str) -> str:
    """The kernel prints the address as 32-bit numbers of the machine's own byte order."""
    words = [int(digits[start : start + 8], 16) for start in range(0, len(digits), 8)]
    family = socket.AF_INET6 if len(digits) == _IPV6_DIGITS else socket.AF_INET
    return socket.inet_ntop(family, struct.pack(f"={len(words)}I", *words))
