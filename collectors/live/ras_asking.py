"""Asks NCCL's RAS service what it knows, in a child that may be abandoned.

It is a thread inside one of the job's processes that listens on a port of this machine; to answer, it asks its like on all
nodes. Only asked where every process that listens on the port is a rank of the job: else it may be another job's.
"""

import contextlib
import os
import re
import socket
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from pardbg.collectors.live.process_folder import ProcessFolder
from pardbg.collectors.parsing.ras_json import parse_ras_json
from pardbg.collectors.parsing.ras_text import parse_ras_text
from pardbg.collectors.procfs.sockets import End, find_listeners
from pardbg.collectors.procfs.stat import parse_stat
from pardbg.collectors.reading_job import RasRead, RasRequest
from pardbg.watchdog.model.ras import RasSeen

LEAST_PAUSE_S = 15.0
LARGEST_ANSWER_BYTES = 64 * 1024 * 1024
_LOOPBACK = frozenset({"127.0.0.1", "::1"})
_SOCKET = re.compile(r"socket:\[(\d{1,20})\]$")
_JSON = re.compile(rb'^\{\s*"nccl_version"', re.MULTILINE)
_ASKED = "CLIENT PROTOCOL 2\nTIMEOUT {within:g}\nSET FORMAT json\nVERBOSE STATUS\n"  # who knows no JSON answers with text


def ask_ras(request: RasRequest) -> RasRead:
    """What it answers; nothing if no rank listens.

    Raises:
        OSError: if it does not answer in time.
        ParseError: if its answer is none.
    """
    end = _find_end(request)
    if end is None:
        return RasRead()
    if not _may_ask(Path(request.stamp)):
        return RasRead(is_too_soon=True)
    return RasRead(seen=parse_answer(_converse(end, request.within_s)))


def parse_answer(data: bytes) -> RasSeen:
    """Reads an answer, with the server's greeting before it.

    Raises:
        ParseError: if it is none.
    """
    found = _JSON.search(data)
    return parse_ras_json(data[found.start() :]) if found is not None else parse_ras_text(data.decode(errors="replace"))


def _find_end(request: RasRequest) -> End | None:
    """Where a rank listens, on this machine only; None if somebody else does, too."""
    found = dict(listeners(request.port))
    if not found:
        return None
    owned = {inode for pid, started in request.processes for inode in _sockets(pid, started)}
    ends = sorted(set(found.values()))
    return ends[0] if found.keys() <= owned and {address for address, _ in ends} <= _LOOPBACK else None


def listeners(port: int) -> Iterator[tuple[int, End]]:
    """The sockets of this machine that listen on a port, by their inodes; asks no process."""
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"/proc/self/net/{name}", encoding="ascii") as table:  # noqa: PTH123
            yield from find_listeners(table.read(), port)


def _sockets(pid: int, started_ticks: int) -> Iterable[int]:
    with contextlib.suppress(OSError), ProcessFolder(pid) as folder:
        if parse_stat(folder.text("stat") or "").started_ticks == started_ticks:
            links = (folder.link(f"fd/{number}") or "" for number in folder.descriptors())
            return [int(found[1]) for link in links if (found := _SOCKET.match(link))]
    return []


def _converse(end: End, within_s: float) -> bytes:
    until_s = time.monotonic() + within_s
    received = bytearray()
    with socket.create_connection(end, timeout=within_s) as connection:
        connection.sendall(_ASKED.format(within=max(within_s - 1.0, 0.5)).encode())
        while len(received) < LARGEST_ANSWER_BYTES:
            connection.settimeout(max(until_s - time.monotonic(), 0.01))
            part = connection.recv(1024 * 1024)
            if not part:
                break
            received += part
    return bytes(received)


def _may_ask(stamp: Path) -> bool:
    """Whether nobody of this user has asked of late; notes that somebody does now. A file of somebody else is not touched."""
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        existed = stamp.exists()
        descriptor = os.open(stamp, flags, 0o600)
    except OSError:
        return True
    try:
        status = os.fstat(descriptor)
        is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        if existed and is_ours and 0 <= time.time() - status.st_mtime < LEAST_PAUSE_S:
            return False
        with contextlib.suppress(OSError):
            os.utime(descriptor)
    finally:
        os.close(descriptor)
    return True
