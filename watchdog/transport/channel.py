"""One started process through which nodes speak. Nothing here ever waits for it.

What it leaves behind: nothing once `release` was called; the process itself is ended by `ending.py`.
"""

import contextlib
import os
import subprocess
import time
from collections import deque
from typing import IO

from pardbg.watchdog.transport.lines import LINE_BYTES
from pardbg.watchdog.transport.printable import printable
from pardbg.watchdog.transport.splitting import FrameSplitter, LineSplitter
from pardbg.watchdog.transport.way import Launch

MOST_USELESS_BYTES = 16 * 1024**2
"""Output that is no answer to anything, after which the process of a single node is given up."""
MOST_UNREAD_BYTES = 4 * 1024**2
"""Requests that a node has not taken in; the next ones are not even sent."""

_LONGEST_LINE_BYTES = 16 * LINE_BYTES  # another minor may write longer ones
_READ_BYTES = 256 * 1024
_MOST_STRANGE_LINES = 3
_MOST_COMPLAINTS = 20
_LINE_COST_BYTES = 100  # a short line is as much work as a longer one


class Channel:
    """A running process: lines in, lines and complaints out.

    ``greeted`` are the nodes that have come up, the last of them at ``greeted_s``; ``is_heard``: some node has taken in a
    request.
    """

    def __init__(self, launch: Launch) -> None:
        """Starts the process in a session of its own: Ctrl-C reaches us alone, and we end it ourselves.

        Raises:
            OSError: if it cannot be started.
        """
        self.nodes = frozenset(launch.nodes)
        self.launch = launch
        self.started_s = self.greeted_s = time.monotonic()
        self.greeted: set[str] = set()
        self.is_heard = False
        self.strange_lines: list[str] = []
        self.strange_line_count = 0
        self._complaints: deque[str] = deque(maxlen=_MOST_COMPLAINTS)
        self._useless_bytes = 0
        self._lines = FrameSplitter(_LONGEST_LINE_BYTES)
        self._error_lines = LineSplitter(_LONGEST_LINE_BYTES)
        self._unsent = bytearray()
        self.process = subprocess.Popen(  # noqa: S603 - a way's program, or what the user gave
            list(launch.command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            env=launch.environment,
        )
        self.requests, self.answers, self.errors = _streams(self.process)
        for stream in (self.requests, self.answers, self.errors):
            os.set_blocking(stream.fileno(), False)

    @property
    def has_unsent(self) -> bool:
        """Whether requests wait for the process to take them in."""
        return bool(self._unsent)

    @property
    def is_settled(self) -> bool:
        """Whether it is past its start: somebody has greeted, and where it serves several nodes, requests get through."""
        return bool(self.greeted) and (self.is_heard or len(self.nodes) == 1)

    @property
    def is_flooding(self) -> bool:
        """Whether it has sent more than `MOST_USELESS_BYTES` that answer nothing."""
        return self._useless_bytes + self._lines.skipped_bytes + self._error_lines.skipped_bytes > MOST_USELESS_BYTES

    @property
    def complaints(self) -> str:
        """The last lines of its standard error."""
        return "\n".join(self._complaints)

    def send(self, line: bytes) -> bool:
        """Hands a request over, now or as the process takes it in. False: it has not taken in the earlier ones."""
        if len(self._unsent) + len(line) > MOST_UNREAD_BYTES:
            return False
        self._unsent += line
        self.flush()
        return True

    def flush(self) -> None:
        """Writes as much as the process takes. That it is dead shows on its output."""
        try:
            while self._unsent:
                del self._unsent[: os.write(self.requests.fileno(), self._unsent[:_READ_BYTES])]
        except BlockingIOError:
            return
        except (OSError, ValueError):
            self._unsent.clear()

    def hear(self) -> list[bytes] | None:
        """The lines of its output that have become whole; None at its end."""
        data = _read(self.answers)
        if data is None:
            return []
        if not data:
            for line in self._lines.finish():
                self.set_aside(line)
        return self._lines.feed(data) if data else None

    def hear_errors(self) -> list[str] | None:
        """The lines of its standard error that have become whole; None at its end. The last ones are kept."""
        data = _read(self.errors)
        if data is None:
            return []
        self._useless_bytes += len(data)
        found = [printable(line) for line in (self._error_lines.feed(data) if data else self._error_lines.finish())]
        said = [line for line in found if line]
        noise = self.launch.noise
        self._complaints.extend(line for line in said if noise is None or not noise.search(line))
        return said if data or said else None

    def greet(self, node: str) -> None:
        """Notes that a node has come up."""
        if node not in self.greeted:
            self.greeted.add(node)
            self.greeted_s = time.monotonic()

    def set_aside(self, line: bytes) -> None:
        """Counts a line that is no answer to anything that is asked; the first few are kept."""
        self._useless_bytes += len(line) + _LINE_COST_BYTES
        self.strange_line_count += bool(line.strip())
        if len(self.strange_lines) < _MOST_STRANGE_LINES and (words := printable(line, 60)):
            self.strange_lines.append(words)

    def waste(self, line: bytes) -> None:
        """Counts a line of ours that comes too late or twice."""
        self._useless_bytes += len(line) + _LINE_COST_BYTES

    def describe_output(self) -> str:
        """What else it has said, in words; empty if nothing."""
        told = [f"standard error: {' / '.join(list(self._complaints)[-2:])}"] if self._complaints else []
        if self.strange_line_count:
            told.append(f"{self.strange_line_count} foreign lines, first {' / '.join(self.strange_lines)!r}")
        return "; ".join(told)

    def release(self) -> None:
        """Closes our ends of its streams; with that a `collect` ends."""
        for stream in (self.requests, self.answers, self.errors):
            with contextlib.suppress(OSError):
                stream.close()


def _streams(process: "subprocess.Popen[bytes]") -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise ValueError("the process has no streams")
    return process.stdin, process.stdout, process.stderr


def _read(stream: IO[bytes]) -> bytes | None:
    """What has come; empty at the end, None if nothing has come."""
    try:
        return os.read(stream.fileno(), _READ_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""
