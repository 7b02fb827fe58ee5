"""Processes that look like ranks, programs that hang, and interpreters with such a program beside them."""

import contextlib
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

SLEEP = "import sys, time; time.sleep(float(sys.argv[1]))"
HELD_BY_VFORK = "import ctypes; lib = ctypes.CDLL(None); lib.vfork() or lib.sleep({seconds})"
"""The child sleeps on its parent's memory; until it ends the parent can be neither woken nor killed."""


def fake_rank(job: str, code: str, *arguments: str, port: int = 29999, rank: int = 0) -> "subprocess.Popen[bytes]":
    """A process that a census takes for a rank of two."""
    variables = {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "PARDBG_JOB": job, "PATH": os.environ["PATH"],
    }  # fmt: skip
    return subprocess.Popen([sys.executable, "-I", "-S", "-c", code, *arguments], env=variables)


def churn(job: str, count: int, longest_s: float) -> None:
    """So many ranks come and go, six at a time: some end, some are killed, some stay zombies for a while."""
    living: list[tuple[float, subprocess.Popen[bytes]]] = []
    for number in range(count):
        rank = fake_rank(f"{job}-{number}", SLEEP, str(random.uniform(0.1, longest_s)), port=29000 + number)
        living.append((time.monotonic() + longest_s, rank))
        time.sleep(0.25)
        while living and (len(living) >= 6 or living[0][0] < time.monotonic()):
            _, oldest = living.pop(0)
            oldest.send_signal(signal.SIGKILL)
            oldest.wait()
    for _, rank in living:
        rank.kill()
        rank.wait()


@contextlib.contextmanager
def unwakeable(job: str, seconds: int) -> Iterator[int]:
    """A rank in state D, which no signal wakes; it ends in time by itself. Gives its pid."""
    with fake_rank(job, HELD_BY_VFORK.format(seconds=seconds)) as rank:
        yield rank.pid
        for child in Path(f"/proc/{rank.pid}/task/{rank.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
        rank.kill()


def interpreter_beside(folder: Path, program: str, script: str) -> str:
    """An interpreter like ours, in a folder where a program does something else."""
    ours = Path(sys.executable).parents[1]
    (folder / "bin").mkdir(parents=True)
    for name in ("lib", "pyvenv.cfg"):
        (folder / name).symlink_to(ours / name)
    (folder / "bin" / "python").symlink_to(sys.executable)
    (folder / "bin" / program).write_text(f"#!/bin/sh\n{script}\n")
    (folder / "bin" / program).chmod(0o755)
    return str(folder / "bin" / "python")


class Clock:
    """A wall clock of its own for some processes: give them ``variables``, and set it at any time."""

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("no C compiler")
        library, self._file = folder / "set_clock.so", folder / "set_clock"
        source = str(Path(__file__).with_name("set_clock.c"))
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", str(library), source], check=True)
        self._file.write_bytes(bytes(8))
        self.variables = {"LD_PRELOAD": str(library), "SET_CLOCK": str(self._file)}

    def add(self, seconds: int) -> None:
        """It shows so much more than the machine's."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("l", seconds))
