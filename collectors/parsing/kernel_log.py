"""A host's kernel log: the lines that can explain why a job stopped, as facts; every other line is dropped unread.

Linear in the text; of each kind the newest `MOST_EVENTS` are kept. Lines of user programs in a journal that quote the kernel
do not count: only what begins as the kernel's own lines do.
"""

import re
from collections import deque

from msgspec.structs import replace

from pardbg.collectors.parsing.kernel_time import place_in_year, read_moment
from pardbg.collectors.parsing.link_lines import parse_link
from pardbg.collectors.parsing.lost_gpu_lines import FALLEN_OFF, named_gpu, says_lost
from pardbg.collectors.parsing.oom_lines import OomSummary, as_kill, complete, parse_oom_kill, parse_oom_summary
from pardbg.collectors.parsing.xid_lines import parse_xid
from pardbg.watchdog.model.kernel import KernelLog, LinkEvent, Moment, OomKill, XidEvent

MOST_EVENTS = 512
_LONGEST_LINE = 2000
_HEAD_LINES = 60
_FEWEST_LINES = 0.6  # of those at its beginning, by which a text without a telling name is a kernel log
TELLING = re.compile(
    r"NVRM: (?:Xid|loading|The NVIDIA GPU|(?:has )?fallen off)|oom-kill:|Killed process|[Ll]ink"
    r"|(?:mlx|bnxt_re|irdma|hns|efa|qib|hfi1)_?\d|Linux version "
)
_NEW_DRIVER = re.compile(r"NVRM: loading NVIDIA UNIX|Linux version ")


def looks_like_kernel_log(text: str) -> bool:
    """Whether text, by its first lines, is a kernel log under any name: its own prefixes, and lines that only it has."""
    head = [line[:_LONGEST_LINE] for line in text[: _HEAD_LINES * _LONGEST_LINE].splitlines() if line.strip()][:_HEAD_LINES]
    own = [found[1] for line in head if (found := read_moment(line)) is not None]
    is_of_kernel = any(_NEW_DRIVER.match(line) or parse_xid(line, Moment()) or _is_of_oom(line) for line in own)
    return is_of_kernel and len(own) >= _FEWEST_LINES * len(head)


def parse_kernel_log(text: str) -> KernelLog:
    """Reads the text of a kernel log; what is no event is no error."""
    reader = _Reader()
    for line in text.splitlines():
        cut = line[:_LONGEST_LINE]
        if TELLING.search(cut):
            reader.read(cut)
    return reader.finish()


def place_log_in_year(log: KernelLog, written_ns: int | None) -> KernelLog:
    """Gives moments of a log that leaves the year out the one in which they came before it was written (epoch ns)."""
    return KernelLog(
        xids=tuple(replace(event, when=place_in_year(event.when, written_ns)) for event in log.xids),
        kills=tuple(replace(event, when=place_in_year(event.when, written_ns)) for event in log.kills),
        links=tuple(replace(event, when=place_in_year(event.when, written_ns)) for event in log.links),
    )


class _Reader:
    """What was read so far."""

    def __init__(self) -> None:
        self._xids: deque[XidEvent] = deque(maxlen=MOST_EVENTS)
        self._kills: deque[OomKill] = deque(maxlen=MOST_EVENTS)
        self._links: deque[LinkEvent] = deque(maxlen=MOST_EVENTS)
        self._summary: tuple[OomSummary, Moment] | None = None
        self._named_gpu: tuple[str, Moment] | None = None
        self._not_found: set[XidEvent] = set()

    def read(self, line: str) -> None:
        """Takes one line."""
        found = read_moment(line)
        if self._named_gpu is not None and says_lost(line):
            self._lose_gpu(*self._named_gpu)
        if found is None:
            return
        when, message = found
        if _NEW_DRIVER.match(message):
            self._clear()
        elif (pci := named_gpu(message)) is not None:
            self._named_gpu = pci, when
        elif (xid := parse_xid(message, when)) is not None:
            self._xids.append(xid)
        elif (summary := parse_oom_summary(message)) is not None:
            self._end_summary()
            self._summary = summary, when
        elif (kill := parse_oom_kill(message, when)) is not None:
            self._kill(kill)
        elif (link := parse_link(message, when)) is not None:
            self._links.append(link)

    def finish(self) -> KernelLog:
        """All of it."""
        self._end_summary()
        return KernelLog(xids=tuple(self._xids), kills=tuple(self._kills), links=tuple(self._links))

    def _clear(self) -> None:
        """Ends what was before the driver was loaded; what it did not find meanwhile it tells just before that."""
        kept = (event if event in self._not_found else replace(event, is_cleared=True) for event in self._xids)
        self._xids = deque(kept, maxlen=MOST_EVENTS)
        self._not_found = set()

    def _lose_gpu(self, pci: str, when: Moment) -> None:
        lost = XidEvent(pci=pci, code=FALLEN_OFF, when=when, is_worded=True)
        self._xids.append(lost)
        self._not_found.add(lost)
        self._named_gpu = None

    def _kill(self, kill: OomKill) -> None:
        summary = self._summary[0] if self._summary is not None else None
        if summary is not None and summary.pid == kill.pid:
            self._summary = None
        else:
            self._end_summary()
        self._kills.append(complete(kill, summary))

    def _end_summary(self) -> None:
        """Keeps a death of which the second line is missing."""
        if self._summary is not None:
            self._kills.append(as_kill(*self._summary))
            self._summary = None


def _is_of_oom(message: str) -> bool:
    return parse_oom_summary(message) is not None or parse_oom_kill(message, Moment()) is not None
