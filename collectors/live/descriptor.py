"""What a thread's system call sleeps on: a pipe, a socket and where it leads, a file and the type of its file system.

Links in ``/proc/PID/fd`` are read and never followed: what they lead to may be a dead mount.
"""

import re

from pardbg.collectors.live.process_folder import ProcessFolder
from pardbg.collectors.procfs.mounts import kind_of_mount
from pardbg.collectors.procfs.sockets import find_connection, is_unix_socket
from pardbg.collectors.procfs.system_calls import DESCRIPTOR_CALLS, SystemCall
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.text import printable_text

_POLLED_BYTES = 4  # struct pollfd begins with the descriptor
_MOST_SELECTED = 1024
_SOCKET = re.compile(r"socket:\[(\d{1,20})\]$")
_ANONYMOUS = re.compile(r"anon_inode:\[?([\w.-]+)\]?$")
_LONGEST_PATH = 300


class Descriptor(Noun, frozen=True, kw_only=True):
    """In words, and whether it is the connection to the job's store."""

    words: str
    is_store: bool = False


class SocketTables:
    """The tables of sockets, each read at most once for a network namespace."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str], str] = {}

    def text(self, folder: ProcessFolder, name: str) -> str:
        """Text of a table as the process sees it; empty where there is none."""
        namespace = folder.link("ns/net")
        if namespace is None:
            return folder.text(f"net/{name}") or ""
        if (namespace, name) not in self._texts:
            self._texts[namespace, name] = folder.text(f"net/{name}") or ""
        return self._texts[namespace, name]


def describe_descriptor(
    folder: ProcessFolder, call: SystemCall, tables: SocketTables, store_port: int | None
) -> Descriptor | None:
    """What the call sleeps on; None for calls without a descriptor, or if it cannot be seen."""
    number = _find_number(folder, call)
    link = folder.link(f"fd/{number}") if number is not None else None
    if link is None:
        return None
    if (socket := _SOCKET.match(link)) is not None:
        return _describe_socket(folder, int(socket[1]), tables, store_port)
    if link.startswith("pipe:["):
        return Descriptor(words="pipe")
    if (anonymous := _ANONYMOUS.match(link)) is not None:
        return Descriptor(words=anonymous[1])
    path = printable_text(link)[-_LONGEST_PATH:]
    if path.startswith("/dev/"):
        return Descriptor(words=path)  # a device's fdinfo may ask the device
    kind = kind_of_mount(folder.text("mountinfo") or "", folder.text(f"fdinfo/{number}") or "")
    return Descriptor(words=f"{path} ({kind})" if kind else path)


def _find_number(folder: ProcessFolder, call: SystemCall) -> int | None:
    if call.name in DESCRIPTOR_CALLS:
        return call.arguments[0]
    if call.name in {"poll", "ppoll"} and call.arguments[1]:
        polled = folder.memory(call.arguments[0], _POLLED_BYTES)
        return int.from_bytes(polled, "little", signed=True) if polled else None
    if call.name in {"select", "pselect6"}:
        return _find_selected(folder, call)
    return None


def _find_selected(folder: ProcessFolder, call: SystemCall) -> int | None:
    """The lowest descriptor that is waited for, to read, else to write."""
    size_bytes = (min(call.arguments[0], _MOST_SELECTED) + 7) // 8
    for address in call.arguments[1:3]:
        bits = int.from_bytes(folder.memory(address, size_bytes) or b"", "little")
        if bits:
            return (bits & -bits).bit_length() - 1
    return None


def _describe_socket(folder: ProcessFolder, inode: int, tables: SocketTables, store_port: int | None) -> Descriptor:
    connection = find_connection((tables.text(folder, name) for name in ("tcp", "tcp6")), inode)
    if connection is not None:
        return Descriptor(words=connection.words, is_store=store_port is not None and connection.has_port(store_port))
    return Descriptor(words="unix socket" if is_unix_socket(tables.text(folder, "unix"), inode) else "socket")
