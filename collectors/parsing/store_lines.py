"""Processes that wait for each other at the store before any group works: its barrier, and the rendezvous itself. Pure.

The barrier's ranks are global. It counts who has joined under a key, whoever that was: a store that an earlier start has left
behind counts those, too.
"""

import re
from collections.abc import Iterator

from pardbg.collectors.parsing.log_lines import line_at
from pardbg.watchdog.model.log_event import RendezvousFailed, StoreBarrier

# torch/distributed/distributed_c10d.py: `worker_count` up to torch 2.0, `num_workers_joined` since
_BARRIER = re.compile(
    r"(?P<how>Waiting|Timed out initializing process group) in store based barrier [^\n]{0,200}?"
    r"rank:? ?(?P<rank>\d{1,7}),(?: for)? key: (?P<key>\S{1,200}) "
    r"\(world_size=(?P<world>\d{1,7}), (?:worker_count|num_workers_joined)=(?P<joined>\d{1,7})\b"
)
_COMPLETED = re.compile(r"Completed store-based barrier for key: ?(?P<key>\S{1,200}) with ")
_CLIENTS = re.compile(
    r"Timed out after \d{1,9} seconds waiting for clients\. (?P<joined>\d{1,7})/(?P<expected>\d{1,7}) clients joined"
)
_SOCKET = re.compile(
    r"client socket has timed out after \d{1,12} ?m?s while trying to connect to "
    r"(?:\((?P<host>[^\s,()]{1,253}), (?P<port>\d{1,5})\)|(?P<address>[^\s()]{1,253}:\d{1,5}))"
)


def parse_store_waits(text: str) -> Iterator[tuple[int, StoreBarrier | RendezvousFailed]]:
    """Each wait that is told, with the place in the text at which it is; of barriers only the last one that nobody left."""
    if " in store based barrier " in text:
        yield from _barriers(text)
    for match in _CLIENTS.finditer(text) if "waiting for clients" in text else ():
        told = line_at(text, match.start())
        joined, expected = int(match["joined"]), int(match["expected"])
        yield match.end(), RendezvousFailed(joined=joined, expected=expected, at_ns=told.at_ns, text=told.text)
    for match in _SOCKET.finditer(text) if "client socket has timed out" in text else ():
        told = line_at(text, match.start())
        address = match["address"] or f"{match['host']}:{match['port']}"
        yield match.end(), RendezvousFailed(address=address, at_ns=told.at_ns, text=told.text)


def _barriers(text: str) -> Iterator[tuple[int, StoreBarrier]]:
    left = {match["key"] for match in _COMPLETED.finditer(text)}
    waits = [match for match in _BARRIER.finditer(text) if match["key"] not in left]
    newest = {match["rank"]: match for match in waits if match["key"] == waits[-1]["key"]}
    for match in newest.values():
        told = line_at(text, match.start())
        event = StoreBarrier(
            rank=int(match["rank"]),
            key=match["key"],
            world_size=int(match["world"]),
            joined=int(match["joined"]),
            has_given_up=match["how"] != "Waiting",
            at_ns=told.at_ns,
            text=told.text,
        )
        yield match.end(), event
