"""A rank's log: the first exception that was the rank's own, and where it was raised.

What is a peer's fault and not the rank's own is decided in `consequences.py`. An exception after which the same writer goes on
training was caught and logged, and is none (`progress.py`).
"""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from pardbg.collectors.parsing.caught import has_left_program, is_head_of_record, is_head_of_survivor
from pardbg.collectors.parsing.consequences import Standing, judge_exception
from pardbg.collectors.parsing.line_prefix import is_relabelled, is_signed, signer_of, signers, split_prefix
from pardbg.collectors.parsing.log_lines import read_time
from pardbg.collectors.parsing.progress import BAR_MARK, announces_failure, goes_on, is_ordinary, read_bar, says_survived
from pardbg.collectors.probe.secrets import hide_secrets
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import LogTraceback
from pardbg.watchdog.model.recording import Frame

LOG_TAIL_BYTES = 8 * 1024 * 1024  # a traceback of a log's first days is not what stopped it now
_MOST_FOREIGN_LINES = 50  # other streams' lines in the middle of a traceback
_LONGEST_EXCEPTION = 500
_LONGEST_PREFIX = 200
_MOST_LAST_LINES = 20  # more of the same writer after an exception, and the exception is hardly what ended it

_MOST_OTHERS = 4  # exceptions beside the first one, in lines that nobody signs
_MOST_LOOKED_AT = 20_000  # lines after an exception in which a sign is sought that it was caught

_START = re.compile(
    r"(?P<label>[ |+]*(?:traceback *: |Original )?)Traceback \(most recent call last\):\s*$"
    r"|[╭┌]─{1,200} Traceback \(most recent call last\) ─{1,200}"
)
_BOXED = ("│", "╭", "╰", "┌", "└")
"""How lines of a traceback begin that a library has drawn a box around; the exception stands below it."""
_BODY = frozenset({"", " ", *_BOXED})  # of a log's very first line nothing stands above
_FRAME = re.compile(r'\s+File "(?P<file>[^"]*)", line (?P<line>\d{1,9})(?:, in (?P<name>.+))?$')
_EXCEPTION = re.compile(r"(?P<type>[A-Za-z_][\w.]*(?:<locals>\.\w+)*)(?::(?: .*)?)?$")
_SURE_TYPE = re.compile(r"(?:Error|Exception|Exit|Interrupt|Iteration|Warning|Failure|Fault|Timeout|Abort|Group)$")
_CHAINED = re.compile(r"(?:During handling of the above exception|The above exception was the direct cause)")
_IGNORED = re.compile(r"Exception ignored in|Error in atexit|Exception in thread QueueFeederThread")
_REPORTED_RANK = re.compile(r"\s+rank +: (\d{1,7}) \(local_rank: \d+\)")
_MARKER = re.compile(r"Traceback \(most recent call last\)")


class RankTraceback(Noun, frozen=True, kw_only=True):
    """One rank's own exception; ``rank`` is None where no line says whose it is."""

    rank: int | None
    traceback: LogTraceback


def is_rank_log(text: str) -> bool:
    """Whether a text shows what only logs of ranks show."""
    return _MARKER.search(text) is not None or is_signed(text)


def find_ranks(text: str) -> frozenset[int]:
    """The ranks that sign lines of a log, with ``[rankN]:`` or otherwise."""
    return signers(text)


def parse_rank_log(text: str) -> tuple[RankTraceback, ...]:
    """Finds the first own exception of every rank, and of every stream of lines without one, in the order they ended.

    Linear in the text. The text need not begin at a line's start, nor be whole.
    """
    streams: dict[str, _Stream] = {}
    above = ""
    least = 2 if is_relabelled(text) else 1
    for raw in text.splitlines():
        prefix, line = split_prefix(raw)
        if (stream := streams.get(prefix)) is None:
            stream = streams[prefix] = _Stream(prefix, is_signed=prefix.count("[rank") >= least)
        stream.feed(line, raw, above)
        above = raw
    return tuple(_first_of_each(list(streams.values())))


def _first_of_each(streams: list["_Stream"]) -> Iterator[RankTraceback]:
    seen: set[int] = set()
    for stream in streams:
        for found in stream.close():
            if found.rank is None or found.rank not in seen:
                yield found
            if found.rank is not None:
                seen.add(found.rank)


class _Stream:
    """The lines of one writer: at most one traceback is open at a time."""

    def __init__(self, prefix: str, *, is_signed: bool) -> None:
        self._is_hooked = is_signed and "[rank" in prefix.replace("[rank=", "")
        self._rank = signer_of(prefix) if is_signed or "[rank" not in prefix else None
        self._reported_rank: int | None = None
        self._found: dict[int | None, LogTraceback] = {}
        self._frame: Frame | None = None
        self._exception = ""
        self._words_left = 0
        self._foreign_left = 0
        self._is_skipped = False
        self._skip_next = False
        self._owner: int | None = None
        self._at_ns: int | None = None
        self._lines_after: dict[int | None, int] = {}
        self._bars: dict[int, int] = {}
        self._above = ""
        self._frame_line = ""
        self._is_chained = False
        self._chain_next = False
        self._is_survived = False
        self._is_logged = False

    def feed(self, line: str, raw: str, above: str) -> None:
        """Takes the next line, the same as it was written, and the one above it, whoever wrote that."""
        start = _START.search(line) if "Traceback" in line else None
        if start is not None:
            self._settle()
            self._open(start["label"] or "", raw, above)
        elif self._foreign_left:
            self._read_open(line)
        elif self._words_left:
            self._words_left -= 1
            self._exception += "\n" + line
            self._notice(line)
            self._go_on(line)
        elif self._is_hooked and self._above[:1] in _BODY and self._is_tail(line):
            self._settle()
            self._open("", raw, above)
            self._read_open(self._frame_line)
            self._read_open(line)
        else:
            self._notice(line)
            self._go_on(line)
        self._above = line
        if line[:1] == " " and line.startswith('  File "'):
            self._frame_line = line
        if BAR_MARK in line and (bar := read_bar(line)) is not None:
            self._bars[bar[1]] = bar[0]

    def _is_tail(self, line: str) -> bool:
        """Whether a line ends a traceback whose head was cut off: torch signs only exceptions that nobody caught."""
        match = _EXCEPTION.match(line)
        return match is not None and _SURE_TYPE.search(match["type"]) is not None and self._rank not in self._found

    def close(self) -> list[RankTraceback]:
        """Ends the stream; what it found, in order."""
        self._settle()
        return [RankTraceback(rank=rank, traceback=self._weigh(rank, found)) for rank, found in self._found.items()]

    def _weigh(self, rank: int | None, found: LogTraceback) -> LogTraceback:
        return replace(found, is_passed=self._is_passed(rank))

    def _drop_passed(self) -> None:
        """A newer exception counts more than one after which much was written, and starts the count anew."""
        if self._is_passed(self._owner):
            self._found.pop(self._owner, None)
        if self._owner not in self._found:
            self._lines_after.pop(self._owner, None)

    def _is_passed(self, owner: int | None) -> bool:
        return self._lines_after.get(owner, 0) > _MOST_LAST_LINES

    def _go_on(self, line: str) -> None:
        """Forgets the exceptions after which this writer trains on: they were caught."""
        if not (self._found or self._exception) or self._lines_after.get(self._rank, 0) > _MOST_LOOKED_AT:
            return
        if goes_on(line, self._bars):
            self._exception, self._words_left = "", 0
            self._found.pop(self._rank, None)
            self._lines_after.pop(self._rank, None)
        elif is_ordinary(line):
            self._lines_after[self._rank] = self._lines_after.get(self._rank, 0) + 1

    def _open(self, label: str, raw: str, above: str) -> None:
        self._frame = None
        self._at_ns = read_time(raw[:_LONGEST_PREFIX])
        if self._at_ns is None and announces_failure(above):
            self._at_ns = read_time(above[:_LONGEST_PREFIX])
        self._foreign_left = _MOST_FOREIGN_LINES
        self._is_skipped, self._skip_next = self._skip_next or says_survived(above), False
        self._is_chained, self._chain_next = self._chain_next, False
        if not self._is_chained:
            self._is_survived, self._is_logged = is_head_of_survivor(self._above), is_head_of_record(self._above)
        self._owner = self._reported_rank if label.lstrip().startswith("traceback") else self._rank

    def _read_open(self, line: str) -> None:
        if (frame := _FRAME.match(line)) is not None:
            name, number = frame["name"] or "<module>", int(frame["line"])
            if self._frame is None and has_left_program(name):
                self._is_logged = False
            self._frame = Frame(name=name.strip(), filename=frame["file"], line=number)
            self._foreign_left = _MOST_FOREIGN_LINES
            return
        text = line.strip() if self._owner != self._rank else line  # torchrun's report indents all of it
        match = _EXCEPTION.match(text)
        is_first = self._foreign_left == _MOST_FOREIGN_LINES
        if match is not None and (_SURE_TYPE.search(match["type"]) or (is_first and self._frame is not None)):
            self._exception, self._foreign_left, self._words_left = text.rstrip(), 0, 4
            self._drop_passed()
        elif line[:1] not in {" ", "", *_BOXED}:
            self._foreign_left -= 1

    def _notice(self, line: str) -> None:
        if "exception" in line and _CHAINED.search(line) and self._exception:
            self._chain_next = True
            self._skip_next = self._is_skipped or judge_exception(self._exception) is not Standing.OWN
        elif _IGNORED.search(line):
            self._skip_next = True
        elif "rank" in line and (reported := _REPORTED_RANK.match(line)) is not None:
            self._reported_rank = int(reported[1])

    def _settle(self) -> None:
        """Judges the traceback that has ended."""
        words, self._exception, self._words_left, self._foreign_left = self._exception, "", 0, 0
        if not words or self._is_skipped:
            return
        standing = judge_exception(words, self._frame.filename if self._frame is not None else "")
        if standing is Standing.WRAPPER:
            return
        exception, first = hide_secrets(words.split("\n", 1)[0][:_LONGEST_EXCEPTION]), self._found.get(self._owner)
        is_caught = self._is_survived or self._is_logged
        if first is not None and not (first.is_caught and not is_caught and standing is not Standing.PEER_LOST):
            self._add_other(first, exception)
            return
        self._found[self._owner] = LogTraceback(
            exception=exception,
            where=self._frame.where if self._frame is not None else None,
            is_consequence=standing is Standing.PEER_LOST,
            at_ns=self._at_ns,
            is_signed=self._owner is not None and (self._is_hooked or self._owner != self._rank),
            is_doubtful=standing is Standing.UNSURE,
            is_caught=is_caught,
        )

    def _add_other(self, first: LogTraceback, exception: str) -> None:
        """Lines that nobody signs may be of several ranks, so that another exception may be another one's."""
        is_other = self._owner is None and not self._is_chained and exception not in {first.exception, *first.others}
        if is_other and len(first.others) < _MOST_OTHERS:
            self._found[None] = replace(first, others=(*first.others, exception))
