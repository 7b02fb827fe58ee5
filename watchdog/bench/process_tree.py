"""Runs a command and measures its wall time and the memory of all its processes together.

Memory is the proportional set size: pages that processes share count once. It is sampled, so short peaks can be missed.
"""

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from pardbg.watchdog.model.base import Noun

SAMPLE_INTERVAL_S = 0.02
BYTES_PER_KIB = 1024


class Measurement(Noun, frozen=True, kw_only=True):
    """What one run took. ``peak_bytes`` is of all processes together; ``stdout`` is kept for checks."""

    wall_s: float
    peak_bytes: int
    exit_code: int
    stdout: str


def measure(command: Sequence[str]) -> Measurement:
    """Runs a command to its end. Its standard error is dropped."""
    started = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:  # noqa: S603
        peak_bytes = 0
        chunks: list[str] = []
        while process.poll() is None:
            peak_bytes = max(peak_bytes, tree_bytes(process.pid))
            try:
                chunks.append(process.communicate(timeout=SAMPLE_INTERVAL_S)[0])
            except subprocess.TimeoutExpired:
                continue
        wall_s = time.monotonic() - started
    return Measurement(wall_s=wall_s, peak_bytes=peak_bytes, exit_code=process.returncode, stdout="".join(chunks))


def tree_bytes(pid: int) -> int:
    """The proportional set size of a process and all its descendants; those that just ended count nothing."""
    return sum(_pss_bytes(member) for member in _descendants(pid))


def _descendants(pid: int) -> list[int]:
    found, queue = [], [pid]
    while queue:
        member = queue.pop()
        found.append(member)
        try:
            tasks = list(Path(f"/proc/{member}/task").iterdir())
            queue += [int(child) for task in tasks for child in (task / "children").read_text().split()]
        except OSError:
            continue
    return found


def _pss_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * BYTES_PER_KIB for line in lines if line.startswith("Pss:")), 0)
