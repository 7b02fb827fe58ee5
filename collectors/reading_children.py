"""One child process of the reader: started, asked, heard, abandoned. Nothing here ever waits for a child."""

import contextlib
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

import pardbg
from pardbg.collectors.reading_protocol import LENGTH, Reply, Request, frame

_PIPE_READ_BYTES = 1024 * 1024
_LARGEST_REPLY_BYTES = 4 * 1024**3
_START = "import sys; sys.path += sys.argv[1:]; from pardbg.collectors.reading_child import main; main()"

Task = TypeVar("Task")


def child_command() -> list[str]:
    """The command of a child: isolated, without site, so that neither the folder it reads nor the environment can add code."""
    places = {str(Path(module.__file__ or "").parent.parent) for module in (pardbg, msgspec)}
    return [sys.executable, "-I", "-S", "-c", _START, *sorted(places)]


class Child(Generic[Task]):
    """A running child with the tasks it was given, oldest first."""

    def __init__(self, command: Sequence[str]) -> None:
        """Starts the process in a session of its own: Ctrl-C reaches the parent, which ends its children itself.

        Raises:
            OSError: if the system starts no more processes.
        """
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        self.tasks: deque[Task] = deque()
        self.heard_at_s = time.monotonic()
        self._received = bytearray()
        self._decoder = msgspec.msgpack.Decoder(Reply)
        os.set_blocking(self.fileno(), False)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def fileno(self) -> int:
        """The descriptor on which answers arrive, for a selector."""
        if self._process.stdout is None:
            raise ValueError("the child has no output")
        return self._process.stdout.fileno()

    def ask(self, task: Task, request: Request) -> None:
        """Hands a request over. A child that is dead is noticed when it is heard."""
        if not self.tasks:
            self.heard_at_s = time.monotonic()
        self.tasks.append(task)
        with contextlib.suppress(BrokenPipeError):
            if self._process.stdin is not None:
                self._process.stdin.write(frame(request))

    def hear(self) -> list[Reply] | None:
        """Takes the answers that have arrived in full; None once the child has ended or talks nonsense."""
        try:
            part = os.read(self.fileno(), _PIPE_READ_BYTES)
        except BlockingIOError:
            return []
        if not part:
            return None
        self.heard_at_s = time.monotonic()
        self._received += part
        return self._decode()

    def _decode(self) -> list[Reply] | None:
        replies: list[Reply] = []
        while len(self._received) >= LENGTH.size:
            size = LENGTH.unpack_from(self._received)[0]
            if size > _LARGEST_REPLY_BYTES:
                return None
            end = LENGTH.size + size
            if len(self._received) < end:
                break
            try:
                replies.append(self._decoder.decode(memoryview(self._received)[LENGTH.size : end]))
            except (msgspec.DecodeError, UnicodeDecodeError):
                return None
            del self._received[:end]
        return replies

    def end(self) -> None:
        """Kills the child and forgets it. One in uninterruptible sleep stays until its mount answers; we do not wait."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=0.2)
