"""Real processes that stand in for ranks: a program, where its output goes, and its identity."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pardbg.collectors.procfs.stat import parse_stat
from pardbg.watchdog.model.world import RankProcess

SLEEP = "import time; print('up', flush=True); time.sleep(60)"


def identify(pid: int, rank: int = 0, *, is_at_home: bool = True) -> RankProcess:
    started = parse_stat(Path(f"/proc/{pid}/stat").read_text()).started_ticks
    return RankProcess(rank=rank, pid=pid, started_ticks=started, host="node1", is_at_home=is_at_home)


@contextmanager
def running(
    command: Sequence[str], *, out: IO[bytes] | int = subprocess.DEVNULL, err: IO[bytes] | int = subprocess.DEVNULL
) -> Iterator[int]:
    """Starts a program of its own and ends it."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env={"PATH": os.defpath}) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def python(code: str = SLEEP) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


def wait_for(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < end_s, "it did not come"
        time.sleep(0.02)
