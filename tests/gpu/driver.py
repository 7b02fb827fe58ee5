"""A driver that a test makes say what it likes: the stand-in for NVML, and the file that it reads."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pardbg.collectors.gpu.gpus import Gpus

PERIOD_S = 0.05
SILENCE_S = 5.0
HANG_S = 1.0  # where a driver really hangs: long enough for a busy machine, short enough for us
PATIENCE_S = 8.0

Found = TypeVar("Found")


class Driver:
    """Lines of the file by their keys; see `nvml_stand_in.c`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: dict[str, object] = {"cards": 2}
        self.say()

    def say(self, lines: dict[str, object] | None = None) -> None:
        """Changes what it answers from now on, in one step; None takes a line away."""
        self._lines |= lines or {}
        self._lines = {key: value for key, value in self._lines.items() if value is not None}
        beside = self._path.with_suffix(".new")
        beside.write_text("".join(f"{key} {value}\n" for key, value in self._lines.items()), encoding="ascii")
        beside.replace(self._path)


def reading(period_s: float = PERIOD_S, silence_s: float = SILENCE_S) -> Gpus:
    """GPUs that are read quickly and given up quickly."""
    return Gpus(period_s=period_s, silence_s=silence_s, opening_s=silence_s + 1.0)


def wait_for(find: Callable[[], Found | None]) -> Found:
    """What ``find`` gives once that is true."""
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        found = find()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {PATIENCE_S} s: {find()!r}")


def is_alive(pid: int) -> bool:
    """Whether a process is there and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def library_path(folder: Path) -> str:
    """What LD_LIBRARY_PATH must be for the library in a folder to be found first."""
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH", "")]))
