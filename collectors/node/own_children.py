"""Processes of our own: one that sleeps, to try on; and one that tries, which is given up if it hangs.

Both end when their standard input is closed, so also when we are killed. Cost: 20 ms and 100 ms of a processor to start.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import msgspec

from pardbg.collectors.node.answers import Answer, Request
from pardbg.collectors.own_child import END_S, child_command, end_child, start_child

_SLEEPER = "import sys; print(id(sys), flush=True); sys.stdin.read()"
_PART_BYTES = 65536

Child = subprocess.Popen[bytes]


@contextlib.contextmanager
def running_sleeper() -> Iterator[Child]:
    """A Python process that waits for its input to end. Its first line of output is the address of one of its objects.

    Raises:
        OSError: if the system starts no more processes.
    """
    with _running([sys.executable, "-I", "-S", "-c", _SLEEPER]) as child:
        yield child


@contextlib.contextmanager
def running_trier() -> Iterator[Child]:
    """A process that answers one request: isolated, so that no environment can add code.

    Raises:
        OSError: if the system starts no more processes.
    """
    with _running(child_command("pardbg.collectors.node.trying_child")) as child:
        yield child


def ask(child: Child, request: Request) -> None:
    """Hands the request over. A child that is dead is noticed when it is heard."""
    if child.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(msgspec.json.encode(request) + b"\n")


def hear(child: Child, until_s: float) -> list[Answer]:
    """All answers that come before the child ends or the time (monotonic) is up."""
    decoder = msgspec.json.Decoder(Answer)
    answers: list[Answer] = []
    for line in _lines(child, until_s):
        with contextlib.suppress(msgspec.DecodeError):
            answers.append(decoder.decode(line))
    return answers


def first_line(child: Child, until_s: float) -> bytes | None:
    """The first line, None if there is none in time."""
    return next(_lines(child, until_s), None)


def killed_by(child: Child) -> str:
    """The signal that a child died of; empty if it lives, or ended by itself."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        exit_code = child.wait(timeout=END_S)
        return signal.Signals(-exit_code).name if exit_code < 0 else ""
    return ""


def _lines(child: Child, until_s: float) -> Iterator[bytes]:
    if child.stdout is None:
        return
    poll = select.poll()
    poll.register(child.stdout.fileno(), select.POLLIN)
    received = b""
    while poll.poll(max(0.0, until_s - time.monotonic()) * 1000):
        part = os.read(child.stdout.fileno(), _PART_BYTES)
        if not part:
            return
        *lines, received = (received + part).split(b"\n")
        yield from lines


@contextlib.contextmanager
def _running(command: list[str]) -> Iterator[Child]:
    """In a session of its own: Ctrl-C reaches us, who end it. It is not waited for longer than a moment."""
    child = start_child(command)
    try:
        yield child
    finally:
        end_child(child)
