"""The child process that attaches: one rank after the other, the first alone, the rest only if it is well a second later.

It is asked once, on its standard input, and answers with a line a rank. It may be killed at any moment: see `shot.py`.
"""

import sys
import time

import msgspec

from pardbg.collectors.attach.rank_lines import attach_lines
from pardbg.collectors.attach.request import Answer, Request, Target
from pardbg.collectors.attach.shooting import Outcome, shoot
from pardbg.collectors.live.identity import is_same_process, read_living
from pardbg.watchdog.model.process import STOPPED_STATES

CANARY_S = 1.0


def main() -> None:
    """Serves one request."""
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    for number, target in enumerate(request.targets):
        if number == 1 and (trouble := _trouble_of(request.targets[0])):
            _answer(target.rank, Outcome(why=f"not tried: rank {request.targets[0].rank}, the first, {trouble}"))
            break
        _answer(target.rank, _attach(target))
        if number == 0 and len(request.targets) > 1:
            time.sleep(CANARY_S)


def _attach(target: Target) -> Outcome:
    if not is_same_process(target.pid, target.started_ticks):
        return Outcome(why="it has ended")
    return shoot(target.pid, attach_lines(target.folder, target.rank, keep_server=target.keep_server))


def _trouble_of(target: Target) -> str:
    """What is wrong with the rank that was attached to first; empty if nothing is."""
    living = read_living(target.pid)
    if living is None or living.started_ticks != target.started_ticks:
        return "has ended since"
    return "has been stopped since" if living.state in STOPPED_STATES else ""


def _answer(rank: int, outcome: Outcome) -> None:
    answer = Answer(rank=rank, is_done=outcome.is_done, why=outcome.why, is_fired=outcome.shot is not None)
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
