"""Finds the worker server that a rank itself runs, without sending a byte to anybody.

torch names the server's threads ``pt_workerserver``, and the one that listens waits in ``accept`` on exactly one descriptor. So
the kernel says which of the rank's sockets is the server. The others are never touched: a stray HTTP request to a listener of
gloo, of NCCL or of the store could break the job, and one to a socket of `multiprocessing` prints a traceback in its log.

Cost: reads of `/proc`, about 1 ms, at most half a second where that thread is never seen to wait; nothing is left behind.
Privilege: `/proc/PID/task/TID/syscall` needs the right to trace the process (root, or the same user where Yama's ptrace_scope
is 0). Without it only a socket is found that the rank's probe or its environment names, and who listens there is checked when
it is asked (`http_exchange.py`).
"""

import contextlib
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

from pardbg.collectors.live.probe.place import find_socket
from pardbg.collectors.live.recorders.listening import (
    TcpAddress,
    UnixAddress,
    find_tcp_listener,
    find_unix_listener,
    parse_accepting,
    parse_socket_inode,
)
from pardbg.collectors.live.recorders.outcome import Refusal
from pardbg.collectors.live.recorders.owner import working_folder
from pardbg.collectors.live.recorders.request import Target
from pardbg.watchdog.model.names import AbsenceReason

THREAD_NAME = "pt_workerserver"
_SOCKET_VARIABLE = "TORCH_WORKER_SERVER_SOCKET"
_LOOKS = 50  # while it hands a connection over, the thread is not in accept: microseconds, and longer on a busy machine
_BETWEEN_LOOKS_S = 0.01
_ALL_INTERFACES = {"::": "::1", "0.0.0.0": "127.0.0.1"}  # noqa: S104 - recognised, not bound
_LOOPBACK = frozenset({"::1", "127.0.0.1"})

Address = UnixAddress | TcpAddress


def find_server(target: Target, proc: Path = Path("/proc")) -> Address | Refusal | None:
    """The address to ask at; None if the rank runs no worker server."""
    denied = Refusal(
        reason=AbsenceReason.DENIED,
        detail="it runs a worker server, and the kernel does not tell us on which socket: run pardbg as root",
        origin=f"/proc/{target.pid}/task",
    )
    try:
        found: Address | Refusal | None = _find_by_thread(proc / str(target.pid), denied)
    except PermissionError:
        found = denied
    except OSError:  # the process is going
        found = None
    if not isinstance(found, UnixAddress | TcpAddress):
        found = _find_by_name(target) or found
    return _made_reachable(found, target, proc) if isinstance(found, UnixAddress | TcpAddress) else found


def _find_by_name(target: Target) -> UnixAddress | None:
    """The socket of the rank's own probe, else the one that its environment names, which all ranks share."""
    named = target.environment.get(_SOCKET_VARIABLE)
    return find_socket(target) or (UnixAddress(path=named) if named else None)


def _find_by_thread(process: Path, denied: Refusal) -> Address | Refusal | None:
    threads = list(_server_threads(process))
    for _ in range(_LOOKS if threads else 0):
        for thread in threads:
            try:
                descriptor = parse_accepting((thread / "syscall").read_text(), platform.machine())
            except PermissionError:
                return denied
            if descriptor is not None:
                return _address_of(process, descriptor)
        time.sleep(_BETWEEN_LOOKS_S)
    detail = "it runs a worker server, of which no thread was seen to wait for a connection"
    return Refusal(reason=AbsenceReason.TIMED_OUT, detail=detail, origin=f"{process}/task") if threads else None


def _server_threads(process: Path) -> Iterator[Path]:
    for thread in (process / "task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if (thread / "comm").read_text().strip() == THREAD_NAME:
                yield thread


def _address_of(process: Path, descriptor: int) -> Address | None:
    inode = parse_socket_inode(str((process / "fd" / str(descriptor)).readlink()))
    if inode is None:
        return None
    return (
        find_unix_listener((process / "net/unix").read_bytes(), inode)
        or find_tcp_listener((process / "net/tcp6").read_text(), inode)
        or find_tcp_listener((process / "net/tcp").read_text(), inode)
    )


def _made_reachable(address: Address, target: Target, proc: Path) -> Address | Refusal:
    """Names the server from where we are, or says why it cannot be named from here."""
    origin = f"/proc/{target.pid}"
    if isinstance(address, UnixAddress):
        if not target.is_readable:
            detail = "its worker server's socket lies in another mount namespace: run pardbg in its container"
            return target.closed or Refusal(reason=AbsenceReason.UNREACHABLE, detail=detail, origin=origin)
        return UnixAddress(path=os.path.join(working_folder(target), address.path), root=target.root)  # noqa: PTH118 - bytes
    host = _ALL_INTERFACES.get(address.host, address.host)
    if host not in _LOOPBACK or not _same_network(target.pid, proc):
        detail = f"its worker server at {address.host}:{address.port} is not on our loopback: run pardbg in its container"
        return Refusal(reason=AbsenceReason.UNREACHABLE, detail=detail, origin=origin)
    return TcpAddress(host=host, port=address.port)


def _same_network(pid: int, proc: Path) -> bool:
    try:
        return (proc / str(pid) / "ns/net").readlink() == (proc / "self/ns/net").readlink()
    except OSError:
        return False
