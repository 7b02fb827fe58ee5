"""torchrun's report of a failed job: which rank ended with which exit code, as its agent saw it.

What it calls the root cause is what it noticed first; the diagnosis decides on it. -15 is what the agent itself sends.
"""

import re
from collections.abc import Iterator

from pardbg.collectors.parsing.log_lines import read_time
from pardbg.watchdog.model.log_event import LauncherFailure

_FIELDS = "(local_rank: "
_NEXT = r"(?: {1,10}|[^\n]{0,100}\n[^\n]{0,200}?)"  # collectors of logs may join the lines of a report
_BLOCK = re.compile(
    rf"time {{1,10}}: (?P<time>\S{{1,40}}){_NEXT}host {{1,10}}: (?P<host>\S{{1,253}}){_NEXT}"
    rf"rank {{1,10}}: (?P<rank>\d{{1,7}}) \(local_rank: (?P<local>\d{{1,5}})\){_NEXT}"
    r"exitcode {1,5}: (?P<code>-?\d{1,5}) \(pid: (?P<pid>\d{1,10})\)"
)
_ROOT, _OTHERS = "Root Cause (first observed failure)", "Failures:"


def parse_torchrun_report(text: str) -> tuple[LauncherFailure, ...]:
    """The failures of the last report that names each rank, by rank. Linear; a log without a report costs one search."""
    if _FIELDS not in text:
        return ()
    last = {failure.rank: failure for failure in _blocks(text)}
    return tuple(failure for _, failure in sorted(last.items(), key=lambda entry: entry[0] or 0))


def _blocks(text: str) -> Iterator[LauncherFailure]:
    first = text.find(_ROOT)
    start = max(0, text.rfind(_OTHERS, 0, first)) if first >= 0 else 0
    for match in _BLOCK.finditer(text, start):
        is_root = text.rfind(_ROOT, start, match.start()) > text.rfind(_OTHERS, start, match.start())
        yield LauncherFailure(
            at_ns=read_time(match["time"]),
            rank=int(match["rank"]),
            text=f"torchrun: rank {match['rank']} on {match['host']} ended with exit code {match['code']} (pid {match['pid']})",
            code=int(match["code"]),
            host=match["host"],
            local_rank=int(match["local"]),
            pid=int(match["pid"]),
            is_called_cause=is_root,
        )
