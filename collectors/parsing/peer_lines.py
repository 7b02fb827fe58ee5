"""Secondary lines: connections, stores and peers that are lost, signals of launchers; gloo's words for all that."""

import re

from pardbg.collectors.parsing.log_lines import LineRead
from pardbg.watchdog.model.log_event import LostSign, PeerLost

WORDS = {
    "dump": ('"should dump" flag', "dump signal", "signal dumping"),
    "SocketImpl": ("failed on SocketImpl",),
    "onnection ": ("Connection closed by", "Connection reset by peer"),
    "roken pipe": ("Broken pipe",),
    "imed out": ("Timed out waiting",),
    "preamble": ("op.preamble.length",),
    "remote process": ("remote process exited",),
    "signal": ("death signal", "signal: 1"),
    "ocket recv": ("Socket recv failed",),
}
_SIGNS = (
    (LostSign.STORE, re.compile(r'"should dump" flag|failed on SocketImpl|TCPStore\.cpp.*(?:Broken pipe|reset by peer)')),
    (LostSign.OWN_TIMEOUT, re.compile(r"First PG on this rank to signal dumping")),
    (LostSign.DUMP_SIGNAL, re.compile(r"dump signal|signal dumping")),
    (LostSign.GLOO_TIMEOUT, re.compile(r"Timed out waiting \d+ms for (?:recv|send) operation")),
    (LostSign.NCCL_REMOTE, re.compile(r"remote process exited|NCCL WARN.*(?:Connection closed by|[Ss]ocket recv failed)")),
    (LostSign.CONNECTION, re.compile(r"Connection closed by|Connection reset by peer|Broken pipe|op\.preamble\.length")),
    (
        LostSign.TERMINATED,
        re.compile(
            r"Received (?:1|2|15|Signals\.SIG(?:HUP|INT|TERM)) death signal"
            r"|(?:got|received) signal: (?:1|15)\b"
        ),
    ),
)


def read_peer(read: LineRead) -> PeerLost | None:
    """What a line tells of a lost peer; None for any other. Only gloo's and torch's own words for it count."""
    sign = next((sign for sign, pattern in _SIGNS if pattern.search(read.line)), None)
    return None if sign is None else PeerLost(rank=read.rank, sign=sign)
