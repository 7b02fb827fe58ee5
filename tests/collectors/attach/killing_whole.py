"""Kills those who attach, at random moments: ``killing_whole.py ranks|counting N [SEED]``. Whom they attach to must not notice.

``ranks``: a process attaches to two ranks that train, through its child, as a scan does. One of both or both are killed.
``counting``: a process shoots at threads that fight for the interpreter lock and allocate. It is killed.
"""

# ruff: noqa: T201 - what it prints is read by tests

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from pardbg.collectors.attach.attaching import attached
from pardbg.collectors.attach.shooting import shoot
from pardbg.collectors.live.identity import read_living
from pardbg.watchdog.model.world import RankProcess
from tests.collectors.attach.ranks import as_rank, training
from tests.collectors.attach.started import started

CODE = "[[] for _ in range(200)]; import threading"
WITHIN_S = 15.0
END_S = 20.0


def fork(work: Callable[[], None]) -> int:
    """A process that does something, once."""
    child = os.fork()
    if not child:
        code = 1
        with contextlib.suppress(BaseException):
            work()
            code = 0
        os._exit(code)
    return child


def attach_once(ranks: list[RankProcess]) -> None:
    """What a scan does."""
    with attached(ranks, time.monotonic() + WITHIN_S):
        pass


def kill_attaching(ranks: list[RankProcess], root: Path, kills: int, dice: random.Random) -> Counter[str]:
    """Kills so many. Tells how many of whom, and after how many something was left: files only, never a thread."""
    told: Counter[str] = Counter()
    threads = [_threads(rank.pid) for rank in ranks]
    began_s = time.monotonic()
    _wait(fork(lambda: attach_once(ranks)))
    longest_s = time.monotonic() - began_s
    while told["kills"] < kills:
        parent = fork(lambda: attach_once(ranks))
        time.sleep(dice.uniform(0, longest_s))
        child = next(iter(_children(parent)), None)
        whom = dice.choice([(parent, child), (child, parent), (parent,), (child,)])
        living = [pid for pid in whom if pid and read_living(pid) is not None]
        for pid in living:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        told["kills"] += bool(living)
        told["of both" if len(living) == 2 else "of the process" if living == [parent] else "of its child"] += bool(living)
        _wait(parent)
        _wait_for_end(child)
        told["left a folder"] += any(root.glob("*/*"))
        told["left threads"] += [_threads(rank.pid) for rank in ranks] != threads
        told["killed the rank"] += any(read_living(rank.pid) is None for rank in ranks)
    return told


def kill_shooting(pid: int, kills: int, dice: random.Random) -> Counter[str]:
    """The same for shots at one process; each is killed some time after its first has begun."""
    told: Counter[str] = Counter()

    def work() -> None:
        os.close(out)
        while True:
            os.write(into, b"x" if shoot(pid, CODE).is_done else b"-")

    for _ in range(kills):
        out, into = os.pipe()
        shooter = fork(work)
        os.close(into)
        time.sleep(dice.uniform(0, 0.25))
        os.kill(shooter, signal.SIGKILL)
        os.waitpid(shooter, 0)
        seen = b""
        while part := os.read(out, 4096):
            seen += part
        os.close(out)
        told["kills"] += 1
        told["shots"] += seen.count(b"x")
        told["others"] += seen.count(b"-")
    return told


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _threads(pid: int) -> int:
    with contextlib.suppress(OSError):
        return len(list(Path(f"/proc/{pid}/task").iterdir()))
    return 0


def _wait(pid: int) -> None:
    os.waitpid(pid, 0)


def _wait_for_end(pid: int | None) -> None:
    """Of a process whose parent is gone: it ends what it does and leaves."""
    until_s = time.monotonic() + END_S
    while pid and read_living(pid) is not None:
        if time.monotonic() > until_s:
            raise TimeoutError(f"process {pid} goes on")
        time.sleep(0.01)


def ranks_survive(kills: int, dice: random.Random) -> bool:
    """Whether two ranks end well, and can be attached to after it all."""
    with tempfile.TemporaryDirectory(prefix="pardbg-", dir="/dev/shm") as name, training(2) as targets:
        ranks = [as_rank(target, number, root=name) for number, target in enumerate(targets)]
        told = kill_attaching(ranks, Path(name), kills, dice)
        for _ in range(3):
            with attached(ranks, time.monotonic() + WITHIN_S) as reached:
                done = len(reached.ranks)
                why = reached.refused
            if done == len(ranks):
                break
        left = [path.name for path in Path(name).iterdir()]
        alive = [target.process.poll() for target in targets]
        for target in targets:
            assert target.process.stdin is not None
            target.process.stdin.close()
            target.process.stdin = None
        ends = [target.end() for target in targets]
    print(dict(told), "attached afterwards:", done, why, "left:", left, "ends:", ends)
    harm = told["left threads"] + told["killed the rank"]
    return (alive, ends, done, left, harm) == ([None, None], [(0, "right\n")] * 2, 2, [], 0)


def counting_survives(kills: int, dice: random.Random) -> bool:
    """Whether the sums of a process are right, and it can be shot at after it all."""
    with started("counting.py") as target:
        told = kill_shooting(target.pid, kills, dice)
        is_alive = target.process.poll() is None
        is_done = any(shoot(target.pid, CODE).is_done for _ in range(5))
        with contextlib.suppress(subprocess.TimeoutExpired):
            end = target.end()
            print(dict(told), "shot at afterwards:", is_done, "end:", end)
            return (is_alive, is_done, end) == (True, True, (0, "right\n"))
    print(dict(told), "it does not end")
    return False


if __name__ == "__main__":
    dice = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    survived = ranks_survive if sys.argv[1] == "ranks" else counting_survives
    sys.exit(0 if survived(int(sys.argv[2]), dice) else 1)
