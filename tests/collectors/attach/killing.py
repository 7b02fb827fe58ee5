"""Kills shooters in mid-shot: ``killing.py N``. What they shoot at must come to its right end all the same.

A shooter is a process that shoots at parked threads of the target without a pause; it is killed at a random moment up to 50 ms
after its first shot has begun. It spends most of its time within shots.
"""

# ruff: noqa: T201 - what it prints is read by tests

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from pardbg.collectors.attach.choosing import choose
from pardbg.collectors.attach.looking import look_at_process
from pardbg.collectors.attach.memory import opened
from pardbg.collectors.attach.preparing import prepare
from pardbg.collectors.attach.shot import Aim, fire
from pardbg.collectors.attach.tracer import ShotError

COUNTING = Path(__file__).with_name("targets") / "counting.py"
CODE = "[[] for _ in range(200)]; import threading"
WITHIN_S = 0.05


@dataclass
class Killed:
    """What has come of it."""

    shots: int = 0
    kills: int = 0
    in_shot: int = 0
    refused: int = 0


def shooter(pid: int, codes: list[str], into: int) -> None:
    """Shoots until it is killed; tells of every shot it begins and ends by one byte."""
    with opened(pid) as memory:
        prepared = prepare(pid, memory.read)
        offset = prepared.c_library.errno_offset
        looks = choose(pid, prepared, memory.read)
        for code in itertools.cycle(codes):
            for old in looks:
                look = look_at_process(pid).threads.get(old.tid)
                if look is None or (look.call, look.stack) != (old.call, old.stack):
                    continue  # still in the last shot
                os.write(into, b"(")
                try:
                    fire(Aim(pid=pid, look=look, waited_ns=0, errno_offset=offset), prepared.functions, code)
                    os.write(into, b")")
                except ShotError:
                    os.write(into, b"-")


def kill_shooters(pids: list[int], codes: list[str], kills: int, seed: int = 0) -> Killed:
    """Starts as many shooters as shall be killed, one after the other, forked from this process."""
    dice, killed = random.Random(seed), Killed()
    for number in range(kills):
        out, into = os.pipe()
        child = os.fork()
        if not child:
            with contextlib.suppress(Exception):
                shooter(pids[number % len(pids)], codes, into)
            os._exit(1)
        os.close(into)
        seen = os.read(out, 1)
        time.sleep(dice.uniform(0, WITHIN_S))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while part := os.read(out, 4096):
            seen += part
        os.close(out)
        killed.shots += seen.count(b")")
        killed.refused += seen.count(b"-")
        killed.in_shot += seen.endswith(b"(")
        killed.kills += 1
    return killed


def main() -> None:
    """Lets the target count until all shooters are dead, then asks for its sum."""
    kills = int(sys.argv[1])
    with subprocess.Popen([sys.executable, str(COUNTING)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as target:
        assert target.stdout is not None
        target.stdout.readline()
        killed = kill_shooters([target.pid], [CODE], kills)
        is_alive = target.poll() is None
        words = target.communicate("")[0].strip()
    print(killed, "alive after the last:", is_alive, "code:", target.returncode, "sum:", words)
    sys.exit(0 if (is_alive, target.returncode, words) == (True, 0, "right") else 1)


if __name__ == "__main__":
    main()
