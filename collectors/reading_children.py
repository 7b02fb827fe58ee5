"""One child process of the reader: started, asked, heard, abandoned. Nothing here ever waits for a child."""

import contextlib
import os
import time
from collections import deque
from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from pardbg.collectors.own_child import child_command, end_child, start_child
from pardbg.collectors.reading_protocol import LENGTH, Reply, Request, frame

_PIPE_READ_BYTES = 1024 * 1024
_LARGEST_REPLY_BYTES = 4 * 1024**3

Task = TypeVar("Task")


def reader_command() -> list[str]:
    """What a child of the reader runs."""
    return child_command("pardbg.collectors.reading_child")


class Child(Generic[Task]):
    """A running child with the tasks it was given, oldest first."""

    def __init__(self, command: Sequence[str]) -> None:
        """Starts the process in a session of its own: Ctrl-C reaches the parent, which ends its children itself.

        Raises:
            OSError: if the system starts no more processes.
        """
        self._process = start_child(command)
        self.tasks: deque[Task] = deque()
        self.heard_at_s = time.monotonic()
        self.is_lost = False
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

    def hear(self) -> list[Reply]:
        """Takes the answers that have arrived in full. Once the child has ended or talks nonsense it `is_lost`."""
        try:
            part = os.read(self.fileno(), _PIPE_READ_BYTES)
        except BlockingIOError:
            return []
        self.is_lost = not part
        self.heard_at_s = time.monotonic()
        self._received += part
        replies: list[Reply] = []
        while not self.is_lost and (body := self._take_body()) is not None:
            try:
                replies.append(self._decoder.decode(body))
            except (msgspec.DecodeError, UnicodeDecodeError):
                self.is_lost = True
        return replies

    def _take_body(self) -> bytes | None:
        """The next whole frame's content, None if it has not arrived yet."""
        if len(self._received) < LENGTH.size:
            return None
        size = LENGTH.unpack_from(self._received)[0]
        if size > _LARGEST_REPLY_BYTES:
            self.is_lost = True
        end = LENGTH.size + size
        if self.is_lost or len(self._received) < end:
            return None
        body = bytes(memoryview(self._received)[LENGTH.size : end])
        del self._received[:end]
        return body

    def end(self) -> None:
        """Kills the child and forgets it. One in uninterruptible sleep stays until its mount answers; we do not wait."""
        end_child(self._process)
