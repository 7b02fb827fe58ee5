"""Lines of a log that are worth a look, and what launchers put before them: times, ranks, colours.

COST: one search of the text (600 MB/s) a stem, and one more a word of the stems that are there; then work only for the lines
that hold a word. Windows bound the length of a line, so that a log without line ends costs no more.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from pardbg.collectors.parsing.line_prefix import LONGEST_LINE, other_signer, without_colours
from pardbg.collectors.probe.secrets import hide_secrets
from pardbg.watchdog.model.base import Noun

MOST_LINES_A_WORD = 20_000  # 4,096 ranks that share a log, each with a few lines
_LONGEST_TEXT = 300
_RANK = re.compile(r"\[rank(\d{1,7})\]:(?: ?\[rank(\d{1,7})\]:)*", re.IGNORECASE)  # a launcher's label may precede torch's
_DATE = re.compile(r"\b\d{4}-(\d\d)-(\d\d)[T _](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")
_GLOG = re.compile(r"(?:^|[\s\[:])[IWEF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?")
_HEAD = 400  # characters in which prefixes stand
_A_LEAP_YEAR = 2000
_NS = 1_000_000_000
_STAMPS = re.compile(
    r"(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?:? *"
    r"|\[rank\d+\]: ?|\[default\d+\]: ?|\(\w+ pid=\d+(?:, ip=[\w.:]+)?\) ?|\[[\w.-]+:[\w.-]+\]: ?)+"
)


class LineRead(Noun, frozen=True, kw_only=True):
    """A line without colours. ``at_ns`` and ``rank`` as in `LogLine`; ``end``: where it ends in its text."""

    line: str
    at_ns: int | None
    rank: int | None
    end: int = 0

    @property
    def text(self) -> str:
        """As evidence quotes it."""
        return hide_secrets(_STAMPS.sub("", self.line.strip(), count=1)[:_LONGEST_TEXT])


Words = Mapping[str, tuple[str, ...]]
"""What to look for, by a part that they have in common and that few lines have."""


def lines_with(text: str, tables: Sequence[Words], most: int = MOST_LINES_A_WORD) -> tuple[list[LineRead], bool]:
    """The lines that hold any of the words, in order, and whether there were more than ``most`` of one word."""
    stems = {stem for table in tables for stem in table}
    present = {stem for stem in stems if stem in text}
    words = dict.fromkeys(word for table in tables for stem in table if stem in present for word in table[stem])
    spans: dict[int, int] = {}
    is_cut = False
    for word in words:
        at, count = text.find(word), 0
        while at >= 0:
            start, end = _bounds(text, at)
            spans[start] = max(end, spans.get(start, 0))
            count += 1
            if count >= most:
                is_cut = True
                break
            at = text.find(word, max(end, at + len(word)))
    return [read_line(text[start:end], end) for start, end in sorted(spans.items())], is_cut


def read_line(raw: str, end: int = 0) -> LineRead:
    """Takes off colours; the time is the outermost one, so that all lines of a log have the same clock."""
    line = without_colours(raw)
    head = line[:_HEAD]
    rank = _RANK.search(head)
    return LineRead(line=line, at_ns=read_time(head), rank=int(rank[2] or rank[1]) if rank else other_signer(head), end=end)


def line_at(text: str, at: int) -> LineRead:
    """The line around a place, of the longest as much as evidence could quote."""
    start, end = _bounds(text, at)
    return read_line(text[start:end], end)


def read_time(head: str) -> int | None:
    """The first time that a line's head names, ns since the year began (of a leap year, so that all dates exist)."""
    match = _DATE.search(head) or _GLOG.search(head)
    if match is None:
        return None
    month, day, hour, minute, second = map(int, match.groups()[:5])
    fraction = int((match[6] or "0").ljust(9, "0"))
    try:
        moment = datetime(_A_LEAP_YEAR, month, day, hour, minute, second, tzinfo=timezone.utc)
    except ValueError:
        return None
    return int((moment - datetime(_A_LEAP_YEAR, 1, 1, tzinfo=timezone.utc)).total_seconds()) * _NS + fraction


def _bounds(text: str, at: int) -> tuple[int, int]:
    """Start and end of the line around ``at``; progress bars end lines with carriage returns."""
    first, last = max(0, at - LONGEST_LINE), min(len(text), at + LONGEST_LINE)
    start = max(text.rfind("\n", first, at), text.rfind("\r", first, at)) + 1 or first
    ends = [end for end in (text.find("\n", at, last), text.find("\r", at, last)) if end >= 0]
    return start, min(ends, default=last)
