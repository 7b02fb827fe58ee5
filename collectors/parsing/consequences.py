"""Exceptions that are not a rank's own: what it says when a peer has gone, and what launchers and wrappers say.

When one rank dies its peers fail too, in the middle of a collective, each with a traceback of its own. Two tables, because they
mean different things for what the same rank says next:

* a lost peer: the process unwinds from here, so that whatever follows is a consequence as well;
* a wrapper: a launcher, a signal, the other end of a DataLoader. The search for the rank's own exception goes on.
"""

import re
from enum import Enum

# Only these types: "network error" in a ValueError of the program is the program's own.
_PEER_TYPE = re.compile(r"(?:RuntimeError|TimeoutError|(?:[\w.]*\.)?(?:Dist\w*Error|EnforceNotMet|AcceleratorError))(?::|$)")
_PEER_LOST = re.compile(
    r"Connection closed by peer"
    r"|pair\.cc:\d+\].*(?:Connection (?:reset|refused)|Broken pipe|op\.preamble\.length)"
    r"|(?:unbound_buffer|pair|context)\.cc:\d+\].*[Tt]imed out"
    r"|Timed out waiting \d+ms for (?:recv|send) operation"
    r"|remote process exited|ncclRemoteError|NCCL communicator was aborted"
    r"|Watchdog caught collective operation timeout|Timeout at NCCL work|detected by watchdog"
    r'|the "should dump" flag'
    r"|(?:sendBytes|recvBytes|recvValue|recvVector|sendValue) failed|[Ff]ailed to recv\b"
    r"|store->get\('[^']*'\) got error|[Ww]ait timeout after \d+ ?ms, keys|Socket Timeout"
    r"|client socket has (?:timed out|failed)|Timed out after \d+ seconds waiting for clients"
    r"|failed to pass monitoredBarrier|Detected mismatch between collectives on ranks"
    r"|^[\w.]*Dist(?:Network|Store)Error\b"
    r"|^[\w.]*DistBackendError: .*(?:[Tt]ime(?:d )?out|remote|[Pp]eer|another rank)",
    re.DOTALL,
)
_WRAPPER = re.compile(
    r"^(?:[\w.]*\.)?(?:ChildFailedError|SignalException|ProcessRaisedException|ProcessExitedException|Rendezvous\w*Error"
    r"|KeyboardInterrupt|SystemExit|BrokenPipeError|ConnectionResetError|ConnectionAbortedError)\b"
    r"|^EOFError$"  # with a message it speaks of a truncated file
    r"|^[\w.]+: Caught \w+ in "  # DataLoader and DataParallel: the original follows
    r"|is killed by signal: Terminated"
)


class Standing(Enum):
    """What an exception is to the rank that raised it."""

    OWN = "own"
    PEER_LOST = "peer-lost"
    WRAPPER = "wrapper"


def judge_exception(words: str) -> Standing:
    """Sorts an exception by its line ``Type: message`` and the few lines after it."""
    first_line = words.split("\n", 1)[0]
    if _PEER_TYPE.match(first_line) and _PEER_LOST.search(words):
        return Standing.PEER_LOST
    return Standing.WRAPPER if _WRAPPER.search(first_line) else Standing.OWN
