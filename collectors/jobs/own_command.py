"""Runs a command of a scheduler's to its end, as a child of ours, and gives what it says, or why it says nothing.

Cost: the command's own. It runs in a session of its own, without a shell and without a terminal; it and what it has started are
killed at its deadline. Never raises, never hangs; nothing stays behind.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable

from pardbg.collectors.own_child import end_child
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason

MOST_ERROR_BYTES = 64 * 1024
ERROR_LENGTH = 200
"""Characters of a complaint that are told."""
_PART_BYTES = 256 * 1024


class Answer(Noun, frozen=True, kw_only=True):
    """What a command wrote to standard output; ``command`` is how a person would ask again."""

    command: str
    output: bytes

    @property
    def text(self) -> str:
        """Decoded; what is no UTF-8 becomes a question mark."""
        return self.output.decode(errors="replace")


class Command(Noun, frozen=True, kw_only=True):
    """What to run.

    Attributes:
        words: the program's path and its arguments, which the caller has looked at.
        spelled: the command for people.
        environment: all that it gets.
        whom: who answers it, in words: "the controller".
        most_bytes: of output.
    """

    words: tuple[str, ...]
    spelled: str
    environment: dict[str, str]
    whom: str
    most_bytes: int


Explain = Callable[[bytes, bytes], Absence]
"""Makes the reason of a failure from what was written to standard error and to standard output."""


def run(command: Command, until_s: float, explain: Explain) -> Answer | Absence:
    """Runs it until it ends, or until ``until_s`` on the monotonic clock."""
    try:
        child = subprocess.Popen(  # noqa: S603 - no shell; see `Command.words`
            command.words,
            env=command.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # Ctrl-C reaches us, who end it; and nobody is asked for a password
        )
    except OSError as error:
        detail = f"{command.spelled} cannot be started: {error.strerror}"
        return Absence(reason=AbsenceReason.UNREADABLE, detail=detail)
    try:
        return _hear(child, command, until_s, explain)
    finally:
        _end(child)


def _end(child: "subprocess.Popen[bytes]") -> None:
    """With what it has started: it is of its session, whose number is its own for as long as it has not been waited for."""
    if child.poll() is None:
        with contextlib.suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
    end_child(child)
    if child.stderr is not None:
        with contextlib.suppress(OSError):
            child.stderr.close()


def _hear(child: "subprocess.Popen[bytes]", command: Command, until_s: float, explain: Explain) -> Answer | Absence:
    output, errors = bytearray(), bytearray()
    if _collect(child, output, errors, command.most_bytes, until_s):
        if len(output) > command.most_bytes:
            detail = f"{command.spelled} wrote more than {command.most_bytes // 1024**2} MiB"
            return Absence(reason=AbsenceReason.UNREADABLE, detail=detail)
        with contextlib.suppress(subprocess.TimeoutExpired):
            if child.wait(timeout=max(0.0, until_s - time.monotonic())) == 0:
                return Answer(command=command.spelled, output=bytes(output))
            return explain(bytes(errors), bytes(output))
    detail = f"{command.spelled} did not answer in time: {command.whom} may be busy or gone"
    return Absence(reason=AbsenceReason.TIMED_OUT, detail=detail)


def _collect(child: "subprocess.Popen[bytes]", output: bytearray, errors: bytearray, most_bytes: int, until_s: float) -> bool:
    """Reads both streams until they end or the output is too long; False if time is up first."""
    with selectors.DefaultSelector() as selector:
        for stream, buffer in ((child.stdout, output), (child.stderr, errors)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, buffer)
        while selector.get_map() and len(output) <= most_bytes:
            left_s = until_s - time.monotonic()
            ready = selector.select(max(0.0, left_s))
            if left_s <= 0 or not ready:
                return False
            for key, _ in ready:
                part = os.read(key.fd, _PART_BYTES)
                if not part:
                    selector.unregister(key.fileobj)
                elif key.data is output or len(errors) < MOST_ERROR_BYTES:
                    key.data.extend(part)
    return True
