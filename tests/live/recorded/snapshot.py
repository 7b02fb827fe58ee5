"""What is kept of a planted job besides the dumps: stacks, logs and ``job.json``, in the forms that `analyze` reads."""

import re
import shutil
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import msgspec
from tests.live.recorded.names import RankSignal
from tests.live.running import process_state

from pardbg.watchdog.demo.logs import LOG_NAME, stderr_by_rank
from pardbg.watchdog.demo.processes import WORLD_SIZE

PY_SPY_S = 20.0
_FAILURE = re.compile(r"exitcode\s*: (-?\d+) \(pid: (\d+)\)")  # torchrun's list of failures (elastic/multiprocessing/errors)


def save_stacks(signals: list[RankSignal], folder: Path) -> int:
    """Has py-spy, where installed, write ``stack_rank<N>.json`` of every living rank. Returns how many there are."""
    py_spy = shutil.which("py-spy") or shutil.which("py-spy", path=str(Path(sys.executable).parent))
    living = [signal for signal in signals if process_state(signal.pid) not in {None, "Z"}]
    if py_spy is None:
        return 0
    writers = []
    for signal in living:
        path = folder / f"stack_rank{signal.rank}.json"
        command = [py_spy, "dump", "--json", "--locals", "--pid", str(signal.pid)]
        with path.open("wb") as file:
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL)
        writers.append((process, path))
    return sum(_has_succeeded(process, path) for process, path in writers)


def _has_succeeded(process: "subprocess.Popen[bytes]", path: Path) -> bool:
    try:
        process.wait(PY_SPY_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.returncode != 0:
        path.unlink()
    return process.returncode == 0


def save_logs(scratch: Path, folder: Path) -> None:
    """Copies what the ranks wrote to stderr, if anything, to ``log_rank<N>.txt``."""
    for rank, text in stderr_by_rank(scratch).items():
        (folder / f"log_rank{rank}.txt").write_text(text, encoding="utf-8")


def save_job_file(job_id: str, signals: list[RankSignal], scratch: Path, folder: Path) -> None:
    """Writes ``job.json``: the ranks, and what has become of their processes."""
    log = (scratch / LOG_NAME).read_text(errors="replace")
    exit_codes = {int(pid): int(code) for code, pid in _FAILURE.findall(log)}
    content = {
        "job": job_id,
        "world_size": WORLD_SIZE,
        "sampled_at": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        "ranks": [_describe(signal, exit_codes) for signal in signals],
    }
    (folder / "job.json").write_bytes(msgspec.json.format(msgspec.json.encode(content)))


def _describe(signal: RankSignal, exit_codes: dict[int, int]) -> dict[str, object]:
    state = process_state(signal.pid)
    return {
        "rank": signal.rank,
        "host": signal.host,
        "pid": signal.pid,
        "local_rank": signal.local_rank,
        "process": {
            "state": state or "gone",
            # torchrun lists every rank that failed, so one that is gone and not listed has ended with 0
            "exit_code": None if state else exit_codes.get(signal.pid, 0),
        },
    }
