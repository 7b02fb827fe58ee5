"""Starts the processes of one job and outlives none of them.

`running.py` talks to it on its standard streams: one line of JSON says what to start, the answer says the process numbers; each
further line is the number of a child to reap, answered by an empty line. When the stream ends - also because the tests were
killed - everything that descends from here is killed, whatever session or parent it has by then, and its temporary files go.
"""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
POLL_S = 0.02


def main() -> None:
    """Serves until its input ends."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans of the job come to us, not to init
    with tempfile.TemporaryDirectory(prefix="job-") as temporary:  # short: sockets of loader workers go there
        try:
            started = [start(temporary, **command) for command in json.loads(sys.stdin.readline())]
            answer(json.dumps([process.pid for process in started]))
            for line in sys.stdin:
                os.waitpid(int(line), 0)
                answer("")
        finally:
            end_descendants()


def start(temporary: str, *, argv: list[str], env: dict[str, str], cwd: str, log: str) -> "subprocess.Popen[bytes]":
    """Starts one process with its output in a file."""
    env = {**env, "TMPDIR": temporary}
    with Path(log).open("wb") as output:
        return subprocess.Popen(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)


def answer(line: str) -> None:
    """To the tests."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def end_descendants() -> None:
    """Kills from the top, so that a launcher restarts nobody, until there is no child left."""
    while True:
        for pid in list(descendants(os.getpid())):
            kill(pid)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(POLL_S)


def descendants(pid: int) -> Iterator[int]:
    """Parents before children."""
    for child in children(pid):
        yield child
        yield from descendants(child)


def children(pid: int) -> list[int]:
    """Of any thread; empty if the process is gone."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += [int(child) for child in path.read_text().split()]
    return found


def kill(pid: int) -> None:
    """SIGKILL, which ends stopped processes too; only if the number still belongs to a descendant when we hold it fast."""
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            if pid in descendants(os.getpid()):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


if __name__ == "__main__":
    main()
