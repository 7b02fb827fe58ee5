"""Lines of watchdogs that a terminal has broken in two, put together again: one half alone names no rank or no operation. Pure.

COST: only lines that hold the words of a watchdog and lack the rest are looked at twice.
"""

import re
from collections.abc import Iterator

from pardbg.collectors.parsing.line_prefix import split_prefix
from pardbg.collectors.parsing.log_lines import LineRead, read_line

_MOST_BREAKS = 3
_WIDEST = 600  # columns of a terminal
_STEMS = ("operation timeout", "ast enqueued", "WorkNCCL(", "dump signal due to")
_SAYS_WHO = re.compile(r"\.(?:cpp|hpp|ts):\d+\]|\bRank \d+\]")
_BEGINS = re.compile(
    r"\[|\d{4}-|[IWEF]\d{4} |\S+:\d+:\d+ \[|Traceback|frame #|terminate called|\s*what\(\)|Exception raised|$"
)  # a line of its own
_PADDING = re.compile(r"[ \t]{2,}$")
_CUT_OPERATION = re.compile(r"OpType=\w*(?![\w,)])")  # what is left of its name may be another operation's


def head_of(text: str, read: LineRead) -> LineRead:
    """The whole line, where ``read`` is its end: it says how far a group had come, and not who says so."""
    if "ast enqueued" not in read.line[:_WIDEST] or _SAYS_WHO.search(read.line):
        return read
    start, joined = _start(text, read.end), read.line
    for _ in range(_MOST_BREAKS):
        if _BEGINS.match(joined) or start <= 0:
            return read
        before = text[_start(text, start - 1) : start - 1]
        joined, start = _PADDING.sub(" ", before) + joined, start - 1 - len(before)
        if _SAYS_WHO.search(before):
            return read_line(joined, read.end)
    return read


def tails_of(text: str, read: LineRead) -> Iterator[LineRead]:
    """The line with what may be the rest of it, the likeliest first."""
    if len(read.line) > _WIDEST or not any(stem in read.line for stem in _STEMS):
        return
    joined, at = read.line, read.end
    for _ in range(_MOST_BREAKS):
        following = text[at + 1 : _end(text, at + 1)]
        if _BEGINS.match(split_prefix(following)[1]) or _BEGINS.match(following):
            return
        at += 1 + len(following)
        for gap in ("", " "):
            longer = f"{_PADDING.sub(' ', joined)}{gap}{following}"
            if not _CUT_OPERATION.search(longer):
                yield read_line(longer, at)
        joined += following


def _start(text: str, end: int) -> int:
    return text.rfind("\n", max(0, end - _WIDEST), end) + 1 or max(0, end - _WIDEST)


def _end(text: str, start: int) -> int:
    end = text.find("\n", start, start + _WIDEST)
    return end if end >= 0 else min(len(text), start + _WIDEST)
