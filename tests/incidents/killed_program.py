"""Writes incidents in one child after the other, each of which is killed at a random moment.

Arguments: the state folder, how many children, a seed. Prints a line for everything that a child has been told is written:
``opened ID`` or ``ended ID``; and ``killed N`` for each child, with how much it had said.
"""

import itertools
import os
import random
import signal
import sys
import time
from pathlib import Path

from pardbg.watchdog.incidents.incidents import Incidents
from pardbg.watchdog.incidents.receivers import Receiver, ReceiverKind
from tests.incidents.making import report

NOBODY = Receiver(kind=ReceiverKind.WEBHOOK, url="http://127.0.0.1:9/")  # letters stay where they are
MOST_LINES = 4
LONGEST_S = 0.03
FILES = 5


def write_for_ever(folder: Path, seed: int, output: int) -> None:
    """What an agent does when jobs hang all the time, and the one before it was killed."""
    agent = Incidents(folder, "n1", [NOBODY])
    for left in agent.open_ones():
        agent.end(left.world)
    say(output, "ready")
    for number in itertools.count():
        world = f"{seed}|{number}"
        place = agent.new_folder(world)
        assert place is not None
        place.mkdir(mode=0o700)
        for file in range(FILES):
            (place / f"stack_rank{file}.json").write_text("[]" * 1000)
        (place / "report.json").write_text("{}\n")
        one = agent.keep(world, report("skipped_operation"), place)
        agent.wait(60)
        say(output, f"opened {one.id}")
        if number % 2:
            agent.end(world)
            agent.wait(60)
            say(output, f"ended {one.id}")


def say(output: int, line: str) -> None:
    """One write: a line is there or not."""
    os.write(output, f"{line}\n".encode())


def start(folder: Path, seed: int) -> tuple[int, int]:
    """A child, and where to read what it says."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        write_for_ever(folder, seed, writer)
    os.close(writer)
    return child, reader


def main(folder: Path, rounds: int, seed: int) -> None:
    """Starts and kills them: at any moment of their start, or of what they do after some lines."""
    chance = random.Random(seed)
    for number in range(rounds):
        child, reader = start(folder, seed * rounds + number)
        with open(reader, "rb", buffering=0) as output:  # noqa: PTH123 - a descriptor
            said = b"".join(output.readline() for _ in range(chance.randrange(MOST_LINES)))
            time.sleep(chance.uniform(0, LONGEST_S))
            os.kill(child, signal.SIGKILL)
            said += output.read()
        _, status = os.waitpid(child, 0)
        os.write(1, said)
        say(1, f"killed {number}" if os.WIFSIGNALED(status) else f"failed {number}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
