"""Whether a dump was written by a given process. A dump names neither host nor pid, and file names repeat from job to job.

But since format 2.9 its entries name the threads that issued them by their addresses (``pthread_self``), and these lie in the
memory map of the process that wrote them. Pure; the map is read by the caller.
"""

from enum import Enum
from typing import Any

import msgspec

from pardbg.collectors.parsing import safe_pickle
from pardbg.watchdog.errors import ParseError


class Author(str, Enum):
    """Who wrote a dump."""

    PROCESS = "process"
    ANOTHER = "another"
    UNKNOWN = "unknown"


def find_author(data: bytes, memory_map: str) -> Author:
    """Tells from the threads of a dump's entries.

    Args:
        data: the dump, pickle or JSON, perhaps truncated.
        memory_map: text of ``/proc/PID/maps``, empty if it could not be read.
    """
    addresses = _thread_addresses(data)
    if not addresses or not memory_map:
        return Author.UNKNOWN
    for line in memory_map.splitlines():
        first, _, last = line.partition(" ")[0].partition("-")
        start, end = int(first, 16), int(last, 16)
        if any(start <= address < end for address in addresses):
            return Author.PROCESS
    return Author.ANOTHER


def _thread_addresses(data: bytes) -> frozenset[int]:
    try:
        content = msgspec.json.decode(data) if data[:1] in b"{[ \n" else _unpickle(data)
    except (ParseError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return frozenset()
    entries = content.get("entries") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        return frozenset()
    names = {entry.get("thread_id") for entry in entries if isinstance(entry, dict)}
    return frozenset(int(name) for name in names if isinstance(name, str) and name.isascii() and name.isdecimal())


def _unpickle(data: bytes) -> Any:
    try:
        return safe_pickle.loads(data)
    except ParseError:
        return safe_pickle.salvage(data)
