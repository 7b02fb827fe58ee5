"""Starts torchrun and leaves nothing of it behind, whatever happens in between."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pardbg.watchdog.demo.logs import LOG_FOLDER, LOG_NAME

WORLD_SIZE = 4
JOB_ID = "demo"
STOP_S = 10.0  # 0.1 s; longer only where the kernel does not let go of a process, and then nobody can help it
WARDEN = Path(__file__).with_name("warden.py")

FOREIGN = ("TORCH", "PET_", "NCCL_", "GLOO_", "PARDBG_", "PYTHONSAFEPATH")  # an outer job's and make's: no part of a plain job
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",  # torchrun's own default, without its warning
    "GLOO_SOCKET_IFNAME": "lo",  # works without a network and without a resolvable host name
}


@dataclass(frozen=True)
class Torchrun:
    """A launcher that was started. Its number stays its own until the job has been ended."""

    pid: int

    @property
    def has_ended(self) -> bool:
        """Whether it is a zombie: nobody reaps it before."""
        stat = Path(f"/proc/{self.pid}/stat").read_text(errors="replace")
        return stat.rpartition(")")[2].split()[0] == "Z"


@contextmanager
def running_torchrun(program: Sequence[str], scratch: Path, wrapper: Sequence[str] = ()) -> Iterator[Torchrun]:
    """Runs plain torchrun with four ranks in ``scratch``, which takes its own log, the ranks' logs and temporary files.

    Leaving the block ends torchrun, its ranks and their children, and no other process, and removes ``scratch``; so does the
    end of this process, however it comes. Ending takes 0.1 s, at most 10 s.

    Args:
        program: what torchrun starts on every rank, with its arguments.
        scratch: an existing folder.
        wrapper: a command that replaces itself by torchrun, such as `pardbg run`.
    """
    command = [*wrapper, sys.executable, "-m", "torch.distributed.run"]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", JOB_ID]
    command += ["--nproc-per-node", str(WORLD_SIZE), "--log-dir", str(scratch / LOG_FOLDER), "--redirects", "3", *program]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    with (scratch / LOG_NAME).open("wb") as log:
        warden = subprocess.Popen(  # noqa: S603 - a fixed command line, no shell
            [sys.executable, "-I", "-S", str(WARDEN), str(scratch)],
            cwd=scratch,
            env={**inherited, **ENVIRONMENT, "TMPDIR": str(scratch)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,  # Ctrl-C reaches us alone, and we end the job in order
        )
    assert warden.stdin is not None  # noqa: S101 - for mypy
    assert warden.stdout is not None  # noqa: S101
    try:
        print(json.dumps(command), file=warden.stdin, flush=True)
        yield Torchrun(pid=int(warden.stdout.readline()))
    finally:
        warden.stdin.close()  # that is what it waits for
        with contextlib.suppress(subprocess.TimeoutExpired):
            warden.wait(STOP_S)
        warden.stdout.close()
