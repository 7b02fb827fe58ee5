"""The living child processes of the test run: what a collector starts must be gone soon after it returns."""

import time
from pathlib import Path

SOON_S = 5.0  # a killed process takes a moment to go where others use the machine


def living_children() -> frozenset[int]:
    """All children of this process, zombies left out: those are only waiting to be asked for."""
    found = {int(pid) for path in Path("/proc/self/task").glob("*/children") for pid in _read(path).split()}
    return frozenset(pid for pid in found if _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()[:1] not in [["Z"], []])


def are_soon_gone(before: frozenset[int]) -> bool:
    """Whether within `SOON_S` no other child lives than those of ``before``."""
    deadline_s = time.monotonic() + SOON_S
    while not living_children() <= before:
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.02)
    return True


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
