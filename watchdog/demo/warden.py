"""`warden.py SCRATCH`: starts torchrun and outlives it. A program of its own, which imports nothing of pardbg.

Its first line of input is the command, as a JSON list; its answer is the process number. When its input ends - because the
demo is done, was interrupted, or was killed - it kills everything that descends from it, whatever session or parent that has by
then, and whether it is stopped or not. Nothing else is ever killed. The scratch folder, where the job lived, goes with it.
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
POLL_S = 0.02


def main() -> None:
    """Serves until its input ends."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans of the job come to us, not to init
    try:
        command = json.loads(sys.stdin.readline())
        started = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr)  # noqa: S603 - the demo's own command
        sys.stdout.write(f"{started.pid}\n")
        sys.stdout.flush()
        sys.stdin.read()
    finally:
        _end_descendants()
        shutil.rmtree(sys.argv[1], ignore_errors=True)


def _end_descendants() -> None:
    """Kills from the top, so that a launcher restarts nobody, until there is no child left."""
    while True:
        for pid in list(_descendants(os.getpid())):
            _kill(pid)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(POLL_S)


def _descendants(pid: int) -> Iterator[int]:
    """Parents before children. Orphans are ours by then, so one walk after another finds all."""
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in map(int, path.read_text().split()):
                yield child
                yield from _descendants(child)


def _kill(pid: int) -> None:
    """SIGKILL, which ends stopped processes too; only if the number is still a descendant's once we hold the process fast."""
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            if pid in _descendants(os.getpid()):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


if __name__ == "__main__":
    main()
