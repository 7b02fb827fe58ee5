"""``/proc/PID/net/tcp`` and its relatives: the two ends of a socket, by its inode."""

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address

from pardbg.watchdog.model.base import Noun

_LISTENING = "0A"
_INODE = 9
_UNIX_INODE = 6

End = tuple[str, int]
"""Address and port."""


class Connection(Noun, frozen=True, kw_only=True):
    """The two ends of a TCP socket; ``remote`` is None for one that listens."""

    local: End
    remote: End | None

    @property
    def words(self) -> str:
        """As a report has it: "socket to 10.0.0.7:29500"."""
        if self.remote is None:
            return f"socket listening on {_write_end(self.local)}"
        return f"socket to {_write_end(self.remote)}"

    def has_port(self, port: int) -> bool:
        """Whether one of its ends is that port."""
        return port in {self.local[1], self.remote[1] if self.remote else None}


def find_connection(tables: Iterable[str], inode: int) -> Connection | None:
    """Looks a socket up in the texts of ``net/tcp`` and ``net/tcp6``."""
    wanted = str(inode)
    for table in tables:
        for line in table.splitlines():
            fields = line.split() if wanted in line else []
            if len(fields) > _INODE and fields[_INODE] == wanted:
                remote = None if fields[3] == _LISTENING else _read_end(fields[2])
                return Connection(local=_read_end(fields[1]), remote=remote)
    return None


def find_listeners(table: str, port: int) -> Iterator[tuple[int, End]]:
    """The sockets that listen on a port, by their inodes, in the text of ``net/tcp`` or ``net/tcp6``."""
    wanted = f":{port:04X}"
    for line in table.splitlines():
        fields = line.split() if wanted in line else []
        if len(fields) > _INODE and fields[3] == _LISTENING and fields[1].endswith(wanted) and fields[_INODE].isdecimal():
            yield int(fields[_INODE]), _read_end(fields[1])


def is_unix_socket(table: str, inode: int) -> bool:
    """Whether the text of ``net/unix`` lists a socket."""
    wanted = str(inode)
    lines = (line.split() for line in table.splitlines() if wanted in line)
    return any(len(fields) > _UNIX_INODE and fields[_UNIX_INODE] == wanted for fields in lines)


def _read_end(text: str) -> End:
    """An address as the kernel prints it: 32-bit words in the machine's byte order, here always little-endian."""
    digits, _, port = text.partition(":")
    raw = bytes.fromhex(digits)
    packed = b"".join(raw[start : start + 4][::-1] for start in range(0, len(raw), 4))
    if len(packed) == 4:
        return str(IPv4Address(packed)), int(port, 16)
    address = IPv6Address(packed)
    return str(address.ipv4_mapped or address), int(port, 16)


def _write_end(end: End) -> str:
    address, port = end
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
