"""The stacks that Python's faulthandler last wrote into a log, if they still hold.

They hold while nothing was written after them but the chatter of background threads: a program that printed since has moved on.
"""

import re

from pardbg.collectors.parsing.stacks import parse_stacks
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Stack

_TAIL_CHARS = 1024 * 1024  # faulthandler writes at most 100 threads of 100 frames
_MARK = "(most recent call first):"
_MOST_FOREIGN_LINES = 20  # between two threads of one dump: other writers' lines
# At the end of a line: a progress bar leaves the cursor in the middle of one.
_BEGIN = re.compile(r"(?P<timeout>Timeout \(\d{1,9}:\d\d:\d\d(?:\.\d+)?\)!)$|Fatal Python error: ")
_HEAD = re.compile(r"(?:Current thread|Thread) (?P<id>0x[0-9a-fA-F]+)(?: \[[^\]]*\])? \(most recent call first\):$")
_FRAME = re.compile(r'  File ".*", line \d{1,9} in .+$')
_REST = re.compile(r"  (?:\.\.\.|<[^>]*>)$")
_TOO_MANY_THREADS = "..."  # the oldest are left out, the main thread among them
_BACKGROUND = re.compile(r"NCCL (?:INFO|WARN)|ProcessGroup\w*\.(?:cpp|hpp)|TCPStore|socket\.cpp|[Hh]eartbeat|[Ww]atchdog")
_WORKER_FILE = re.compile(r"(?:^|/)torch/utils/data/_utils/worker\.py$")


def find_fault_stack(text: str) -> Stack | None:
    """The last dump of a text, None if there is none, or it is no picture of the rank's present.

    A crash of a child, a data-loading worker's stack, and a dump without the main thread are none. The text need not begin at a
    line's start.
    """
    tail = text[-_TAIL_CHARS:]
    if _MARK not in tail:
        return None
    dump = _Dump()
    for raw in tail.splitlines():
        dump.feed(raw.rstrip())
    if dump.is_fatal or dump.foreign or dump.is_cut or not dump.lines:
        return None
    try:
        stack = parse_stacks("\n".join(dump.lines).encode(errors="replace"))
    except ParseError:
        return None
    main = stack.main_thread
    is_worker = main is not None and any(_WORKER_FILE.search(frame.filename) for frame in main.frames)
    return None if is_worker or main is None or not main.frames else stack


class _Dump:
    """The dump that is being read; a new one takes its place. It lists each thread once, which tells where the next begins."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self, *, is_fatal: bool = False) -> None:
        self.lines: list[str] = []
        self._ids: set[str] = set()
        self.is_fatal, self.is_cut, self.foreign = is_fatal, False, 0

    def feed(self, line: str) -> None:
        """Takes the next line; ``foreign`` counts those that are not the dump's since its last one."""
        if (begin := _BEGIN.search(line)) is not None:
            self._begin(is_fatal=begin["timeout"] is None)
        elif line.endswith(":") and (head := _HEAD.search(line)) is not None:
            if head["id"] in self._ids or self.foreign > _MOST_FOREIGN_LINES:
                self._begin()
            self._ids.add(head["id"])
            self._take(head[0])
        elif not self._ids or not line.strip() or _BACKGROUND.search(line):
            return
        elif _FRAME.match(line):
            self._take(line)
        elif line == _TOO_MANY_THREADS:
            self.is_cut = True
        elif not _REST.match(line):
            self.foreign += 1

    def _take(self, line: str) -> None:
        self.lines.append(line)
        self.foreign = 0
