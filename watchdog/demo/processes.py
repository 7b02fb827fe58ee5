"""Starts torchrun and leaves nothing of it behind, whatever happens in between."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pardbg.watchdog.demo.names import WORLD_SIZE
from pardbg.watchdog.model.base import Noun

STOP_S = 5.0  # torchrun itself would wait 30 s for a rank that does not obey
LOG_NAME = "torchrun.log"
LOG_FOLDER = "logs"
JOB_NAME = "demo"

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "GLOO_SOCKET_IFNAME": "lo",  # works without a network and without a resolvable host name
    "TORCH_FR_BUFFER_SIZE": "2000",  # the default, unless the caller has switched the recorder off
    "PYTHONSAFEPATH": "1",
}


class ProcessIdentity(Noun, frozen=True, kw_only=True):
    """A process number together with the start time that makes it unique (clock ticks since boot)."""

    pid: int
    start_ticks: int


@contextmanager
def running_torchrun(program: tuple[str, ...], scratch: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Runs plain torchrun with four ranks; its own log and the ranks' logs go to ``scratch``.

    Leaving the block ends torchrun and its ranks, and no other process.
    """
    command = [sys.executable, "-m", "torch.distributed.run"]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", JOB_NAME]
    command += ["--nproc-per-node", str(WORLD_SIZE), "--log-dir", str(scratch / LOG_FOLDER), "--redirects", "3"]
    command += ["-m", *program]
    with (scratch / LOG_NAME).open("wb") as log:
        launcher = subprocess.Popen(  # noqa: S603 - a fixed command line, no shell
            command,
            cwd=scratch,
            env={**os.environ, **ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches us alone, and we end the job in order
        )
        try:
            yield launcher
        finally:
            _stop(launcher)


def process_state(pid: int) -> str | None:
    """The letter of ``/proc/PID/stat``, or None when there is no such process."""
    fields = _stat_fields(pid)
    return fields[0] if fields else None


def _stop(launcher: "subprocess.Popen[bytes]") -> None:
    ranks = _children_of(launcher.pid)  # torchrun gives each rank a session of its own
    launcher.terminate()
    try:
        launcher.wait(STOP_S)
    except subprocess.TimeoutExpired:
        launcher.kill()
        launcher.wait()
    for rank in ranks:
        if _identify(rank.pid) == rank:
            os.kill(rank.pid, 9)


def _children_of(pid: int) -> list[ProcessIdentity]:
    children = [int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()]
    return [identity for identity in map(_identify, children) if identity is not None]


def _identify(pid: int) -> ProcessIdentity | None:
    fields = _stat_fields(pid)
    return ProcessIdentity(pid=pid, start_ticks=int(fields[19])) if fields else None


def _stat_fields(pid: int) -> list[str]:
    """The fields of ``/proc/PID/stat`` from the state on; the command before them may hold anything."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return stat.rpartition(")")[2].split()
