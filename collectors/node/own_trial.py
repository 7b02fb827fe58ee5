"""The trial on a process of our own, under way beside other work.

Two children: one sleeps, the other reads its memory, takes its stack, and holds it for a millisecond. They are siblings, as
pardbg and a rank are strangers: Yama lets a process look into its own children where it refuses others. Cost: some 250 ms of a
processor. Deadline: `DEADLINE_S` from the start; what has not answered by then is None. Leaves nothing behind but a child that
is stuck in the kernel, which ends when what it waits for does.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from pardbg.collectors.live.py_spy import find_py_spy
from pardbg.collectors.node import own_children
from pardbg.collectors.node.answers import Trial, TrialRequest

DEADLINE_S = 6.0
_DEFAULT_FOLDER = "/tmp"  # noqa: S108 - where others write, too


@contextlib.contextmanager
def trial_under_way() -> Iterator[Callable[[], Trial]]:
    """Starts it, and gives a function that waits for what it says."""
    until_s = time.monotonic() + DEADLINE_S
    with contextlib.ExitStack() as stack:
        try:
            sleeper = stack.enter_context(own_children.running_sleeper())
            trier = stack.enter_context(own_children.running_trier())
        except OSError as error:
            problem = f"no process of our own to try on could be started: {error.strerror}"
            yield lambda: Trial(problem=problem)
            return
        address = own_children.first_line(sleeper, until_s)
        if address is None or not address.isdigit():
            yield lambda: Trial(problem="no process of our own to try on could be started")
            return
        request = TrialRequest(
            pid=sleeper.pid,
            address=int(address),
            py_spy=find_py_spy() or "",
            folder=os.environ.get("TMPDIR") or _DEFAULT_FOLDER,
        )
        own_children.ask(trier, request)
        yield lambda: _last(trier, until_s)


def _last(trier: own_children.Child, until_s: float) -> Trial:
    trials = [answer for answer in own_children.hear(trier, until_s) if isinstance(answer, Trial)]
    trial = trials[-1] if trials else Trial()
    if trial.file_clock is not None:  # the last of all
        return trial
    killed_by = own_children.killed_by(trier)
    if killed_by:
        return replace(trial, problem=f"the process that tried was killed by {killed_by}", is_killed=True)
    return replace(trial, problem=f"the trial was not done within {DEADLINE_S:g} s")
