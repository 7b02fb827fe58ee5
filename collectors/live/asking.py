"""Asks a child process to read `/proc`, and gives the child up if it does not answer.

Most of `/proc` answers at once whatever the process does. Some of it waits for locks that a stuck process can hold: its memory,
on older kernels also its system call and its counters while it starts a program from a dead mount.

Cost: one child of about 80 ms and 20 MB; another for each that is lost, at most `_MOST_LOST`. Leaves nothing behind, except a
lost child in uninterruptible sleep, which ends by itself when what it waits for does.
"""

import contextlib
import os
import select
import subprocess
import time
from types import TracebackType

import msgspec

from pardbg.collectors.live.asking_protocol import LENGTH, Answer, Question
from pardbg.collectors.own_child import child_command, end_child, start_child

DEADLINE_S = 5.0
_MOST_LOST = 4
_PIPE_READ_BYTES = 1024 * 1024


class Asker:
    """Puts one question after the other. A context manager: leaving it ends the child, also after Ctrl-C."""

    def __init__(self, *, deadline_s: float = DEADLINE_S, command: tuple[str, ...] | None = None) -> None:
        """Starts nothing yet.

        Args:
            deadline_s: how long one question may take, the start of the child included.
            command: what a child runs; default: our own interpreter, isolated, so that no environment can add code.
        """
        self._command = command or child_command("pardbg.collectors.live.looking_child")
        self._deadline_s = deadline_s
        self._child: subprocess.Popen[bytes] | None = None
        self._decoder = msgspec.msgpack.Decoder(Answer)
        self._lost = 0

    def __enter__(self) -> "Asker":  # noqa: PYI034 - Self needs Python 3.11
        """Gives itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Ends the child; waits at most a moment for it."""
        self._drop()

    @property
    def pid(self) -> int | None:
        """The process id of the living child."""
        return self._child.pid if self._child else None

    def ask(self, question: Question) -> Answer | None:
        """The answer, or None if there was none before the deadline. After `_MOST_LOST` such questions None at once."""
        if self._lost >= _MOST_LOST:
            return None
        answer = None
        with contextlib.suppress(OSError, EOFError, msgspec.DecodeError):
            child = self._child = self._child or self._start()
            answer = self._exchange(child, msgspec.msgpack.encode(question))
        if answer is None:
            self._lost += 1
            self._drop()
        return answer

    def _start(self) -> "subprocess.Popen[bytes]":
        return start_child(self._command)

    def _exchange(self, child: "subprocess.Popen[bytes]", body: bytes) -> Answer | None:
        if child.stdin is None or child.stdout is None:
            return None
        give_up_at_s = time.monotonic() + self._deadline_s
        child.stdin.write(LENGTH.pack(len(body)) + body)  # far less than a pipe holds
        received = bytearray()
        poll = select.poll()
        poll.register(child.stdout.fileno(), select.POLLIN)
        while len(received) < LENGTH.size or len(received) < LENGTH.size + LENGTH.unpack_from(received)[0]:
            if not poll.poll(max(0.0, give_up_at_s - time.monotonic()) * 1000):
                return None
            part = os.read(child.stdout.fileno(), _PIPE_READ_BYTES)
            if not part:
                raise EOFError
            received += part
        return self._decoder.decode(received[LENGTH.size :])

    def _drop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            end_child(child)
