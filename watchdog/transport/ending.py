"""Ends the processes of a conversation, all at once and within a bound.

First their input is closed: a `collect` ends by itself then, wherever it is, and with it srun, ssh and kubectl. What has not
ended after `LEAVE_S` gets SIGTERM, and SIGKILL `INSIST_S` later; `INSIST_S` after that it is left to its fate (a process that
the kernel holds).
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Sequence

from pardbg.watchdog.transport.channel import Channel

LEAVE_S = 2.0
INSIST_S = 1.0

_ROUND_S = 0.02


def end_all(channels: Sequence[Channel], dying: "Sequence[subprocess.Popen[bytes]]") -> None:
    """Ends the processes of ``channels``, and ``dying``, which have been told. Deadline: ``LEAVE_S + 2 * INSIST_S``."""
    for channel in channels:
        with contextlib.suppress(OSError):
            channel.requests.close()
    processes = [*(channel.process for channel in channels), *dying]
    try:
        if not _are_gone(processes, LEAVE_S, lambda: _drain(channels)):
            _signal(processes, subprocess.Popen.terminate)
            _are_gone(processes, INSIST_S, lambda: _drain(channels))
    finally:
        _signal(processes, subprocess.Popen.kill)
        for channel in channels:
            channel.release()
        _are_gone(processes, INSIST_S, lambda: None)


def _are_gone(processes: "Sequence[subprocess.Popen[bytes]]", within_s: float, between: Callable[[], None]) -> bool:
    until_s = time.monotonic() + within_s
    while any(process.poll() is None for process in processes):
        if time.monotonic() >= until_s:
            return False
        between()
        time.sleep(_ROUND_S)
    return True


def _drain(channels: Sequence[Channel]) -> None:
    """Takes what they still say, so that none is kept from ending by a full pipe."""
    for channel in channels:
        for stream in (channel.answers, channel.errors):
            with contextlib.suppress(OSError):
                os.read(stream.fileno(), 1024**2)


def _signal(processes: "Sequence[subprocess.Popen[bytes]]", send: "Callable[[subprocess.Popen[bytes]], None]") -> None:
    for process in processes:
        if process.poll() is None:
            send(process)
