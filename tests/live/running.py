"""Real jobs for tests: starts one, waits until its fault has come, and leaves nothing of it behind.

The job is what people have: torchrun (or four processes and a few variables), a program that knows nothing of pardbg, logs in
files, the flight recorder as torch sets it. A small parent (`jobs/warden.py`) holds it, so that everything ends with the tests
even where those are killed. Starting costs 4 to 6 s for four ranks on two cores; ending 0.1 s.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.live.jobs.warden import descendants

JOBS = Path(__file__).with_name("jobs")
READY_S = 90.0  # 5 s on two idle cores, 20 s for eight ranks; others may use the machine
SETTLE_S = 1.0  # twenty steps: enough for the ranks that do not stop themselves to run into the one that has
POLL_S = 0.02
TAIL_BYTES = 2000
FOREIGN = ("TORCH", "NCCL", "PARDBG", "PYTEST", "PYTHON", "COV", "RANK", "LOCAL_", "GROUP_", "ROLE_", "WORLD_", "MASTER_")

Launcher = Literal["torchrun", "plain"]


class JobError(Exception):
    """The job did not come to its fault."""


@dataclass(frozen=True, kw_only=True)
class RunningJob:
    """A job that runs now.

    Attributes:
        job_id: what ``pardbg scan --job`` takes; None for a plain job, which has no launcher to give it one.
        folder: holds ``logs`` (torchrun's layout, or ``rank_N.log`` of a plain job), ``launcher.log`` and ``work``, its cwd.
        launcher_pid: torchrun (or the command it is wrapped in); None for a plain job.
    """

    job_id: str | None
    folder: Path
    ranks: int
    launcher_pid: int | None
    _warden: "subprocess.Popen[str]" = field(repr=False)
    _plain_pids: tuple[int, ...] = ()

    @property
    def ready_file(self) -> Path:
        """Exists from the moment in which the fault comes; a program without one touches it at its tenth step."""
        return self.folder / "ready"

    @property
    def pids(self) -> dict[int, int]:
        """Process numbers by global rank, now: torchrun may restart them. A plain job's include those that have ended."""
        if self.launcher_pid is None:
            return dict(enumerate(self._plain_pids))
        return dict(sorted(_ranks_below(self.launcher_pid)))

    @property
    def processes(self) -> list[int]:
        """Everything that belongs to the job: launcher, ranks, their children."""
        return list(descendants(self._warden.pid))

    def wait_until_hung(self, settle_s: float = SETTLE_S, deadline_s: float = READY_S) -> None:
        """Waits until the fault has come, and for the other ranks to run into it.

        Raises:
            JobError: with the end of the logs, if the fault does not come in time or the job ends before.
        """
        deadline = time.monotonic() + deadline_s
        while not self.ready_file.exists():
            if time.monotonic() > deadline or self._has_ended():
                raise JobError(f"the fault did not come:\n{self.last_words()}")
            time.sleep(POLL_S)
        time.sleep(settle_s)

    def wait_until_ended(self, deadline_s: float = READY_S) -> None:
        """Waits until launcher and ranks have ended; zombies stay until the job is left.

        Raises:
            JobError: with the end of the logs, if that takes too long.
        """
        deadline = time.monotonic() + deadline_s
        while not self._has_ended():
            if time.monotonic() > deadline:
                raise JobError(f"the job did not end:\n{self.last_words()}")
            time.sleep(POLL_S)

    def stop(self, rank: int) -> None:
        """SIGSTOP, wherever the rank is at this moment."""
        os.kill(self.pids[rank], signal.SIGSTOP)

    def resume(self, rank: int) -> None:
        """SIGCONT."""
        os.kill(self.pids[rank], signal.SIGCONT)

    def kill(self, rank: int) -> None:
        """SIGKILL. Of a plain job a zombie stays until `reap`; torchrun ends all other ranks within a second."""
        os.kill(self.pids[rank], signal.SIGKILL)

    def reap(self, rank: int) -> None:
        """Takes the zombie of a rank of a plain job away; waits for its end if it lives."""
        assert self._warden.stdin is not None
        assert self._warden.stdout is not None
        print(self.pids[rank], file=self._warden.stdin, flush=True)
        self._warden.stdout.readline()

    def last_words(self) -> str:
        """The end of every log."""
        logs = [self.folder / "launcher.log", *sorted((self.folder / "logs").rglob("*.log"))]
        texts = {path: path.read_bytes()[-TAIL_BYTES:].decode(errors="replace") for path in logs if path.is_file()}
        return "\n".join(f"--- {path}\n{text}" for path, text in texts.items() if text.strip())

    def _has_ended(self) -> bool:
        return all(
            process_state(pid) in {"Z", None} for pid in ([self.launcher_pid] if self.launcher_pid else self._plain_pids)
        )


@contextmanager
def running_job(
    program: str,
    *args: str,
    folder: Path,
    ranks: int = 4,
    launcher: Launcher = "torchrun",
    job_id: str = "job",
    env: Mapping[str, str] | None = None,
    launcher_args: Sequence[str] = (),
    prefix: Sequence[str] = (),
) -> Iterator[RunningJob]:
    """Runs ``jobs/<program>.py`` with ``args`` on every rank; leaving the block ends it, whatever state it is in.

    Args:
        program: the name of a file in ``jobs``, without its ending.
        args: what the program takes, such as ``"--fault", "lock"``.
        folder: where everything goes that the job writes, temporary files apart; made if it is not there.
        ranks: size of the world.
        launcher: ``plain`` starts the ranks as processes of their own with the variables of ``env://``.
        job_id: torchrun's ``--rdzv-id``.
        env: added to the ranks' environment, last.
        launcher_args: more options of torchrun, such as ``--max-restarts=100``.
        prefix: a command that torchrun (plain: every rank) is wrapped in, such as ``unshare --pid --fork --mount-proc``.
    """
    for name in ("logs", "work"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    with _warden() as warden:
        variables = {**_environment(folder), **(env or {})}
        script = [sys.executable, *_torchrun(job_id, ranks, folder, launcher_args), str(JOBS / f"{program}.py"), *args]
        if launcher == "torchrun":
            (pid,) = _start(warden, [_command([*prefix, *script], variables, folder, "launcher.log")])
            yield RunningJob(job_id=job_id, folder=folder, ranks=ranks, launcher_pid=pid, _warden=warden)
            return
        script = [sys.executable, str(JOBS / f"{program}.py"), *args]
        worlds = [{**variables, **rank} for rank in _rank_variables(ranks)]
        commands = [_command([*prefix, *script], world, folder, f"logs/rank_{rank}.log") for rank, world in enumerate(worlds)]
        pids = tuple(_start(warden, commands))
        yield RunningJob(job_id=None, folder=folder, ranks=ranks, launcher_pid=None, _warden=warden, _plain_pids=pids)


def _torchrun(job_id: str, ranks: int, folder: Path, launcher_args: Sequence[str]) -> list[str]:
    arguments = ["-m", "torch.distributed.run", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    arguments += ["--rdzv-id", job_id, "--nproc-per-node", str(ranks)]
    return [*arguments, "--log-dir", str(folder / "logs"), "--redirects", "3", *launcher_args]


def _environment(folder: Path) -> dict[str, str]:
    """What a user's shell gives, without what pytest, make and an outer job have put there."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    own = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "READY_FILE": str(folder / "ready")}
    return {**inherited, **own}


def _rank_variables(ranks: int) -> list[dict[str, str]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    world = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks)}
    return [{**world, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(ranks)]


def _command(argv: list[str], env: Mapping[str, str], folder: Path, log: str) -> dict[str, object]:
    return {"argv": argv, "env": dict(env), "cwd": str(folder / "work"), "log": str(folder / log)}


@contextmanager
def _warden() -> Iterator["subprocess.Popen[str]"]:
    warden = subprocess.Popen(
        [sys.executable, "-I", "-S", str(JOBS / "warden.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C reaches the tests alone, and they end the job in order
    )
    with warden:  # closes the pipes, which tells it to end the job, and waits
        yield warden


def _start(warden: "subprocess.Popen[str]", commands: list[dict[str, object]]) -> list[int]:
    assert warden.stdin is not None
    assert warden.stdout is not None
    print(json.dumps(commands), file=warden.stdin, flush=True)
    pids: list[int] = json.loads(warden.stdout.readline())
    return pids


def _ranks_below(pid: int) -> Iterator[tuple[int, int]]:
    """Ranks are the first Python processes with a rank in their environment; loader workers below inherit it."""
    seen: set[int] = set()
    for child in descendants(pid):
        parent = _stat(child)[1:2]
        if parent and int(parent[0]) in seen:
            seen.add(child)
        elif (rank := _rank_of(child)) is not None:
            seen.add(child)
            yield rank, child


def _rank_of(pid: int) -> int | None:
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    return next((int(variable[5:]) for variable in variables if variable.startswith(b"RANK=")), None)


def process_state(pid: int) -> str | None:
    """The letter of ``/proc/PID/stat``; None if there is no such process."""
    return next(iter(_stat(pid)), None)


def start_ticks(pid: int) -> int | None:
    """Clock ticks between boot and the start of a process, which make its number unique; None if there is none."""
    return next((int(ticks) for ticks in _stat(pid)[19:20]), None)


def _stat(pid: int) -> list[str]:
    """State, parent and so on; empty if the process is gone. The command before them may hold anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
