"""Takes stacks with native frames of very few processes, where Python's own do not explain.

Here py-spy *stops* the process while it unwinds. It is never killed, since whoever kills a tracer may leave the process
stopped: after the deadline we stop waiting and it goes on by itself, as it does if pardbg is killed. Cost: 0.2-1 s of a
processor a process to read the symbols of torch's libraries, while the process runs; then it stands still for 20-60 ms (on two
busy processors). Leaves nothing behind, except a py-spy that missed the deadline, until it is done.
"""

import time
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from pardbg.collectors.live.identity import is_same_process
from pardbg.collectors.live.py_spy import PySpyRun, find_py_spy
from pardbg.collectors.live.stacks import GONE, NOT_INSTALLED, Target, read_run
from pardbg.watchdog.model.evidence import Absence, Evidence, Stack
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.world import RankProcess

MOST_RANKS = 2
DEADLINE_S = 20.0
_BETWEEN_LOOKS_S = 0.01


def take_native_stacks(ranks: Sequence[RankProcess], sample: int, *, deadline_s: float = DEADLINE_S) -> list[Evidence]:
    """One stack with native frames a rank, one after the other; of the first `MOST_RANKS` ranks only.

    Args:
        ranks: the processes.
        sample: number of this look.
        deadline_s: after which we stop waiting for one process. Its py-spy stays.
    """
    program = find_py_spy()
    if program is None:
        return [Evidence(source=CollectorName.STACKS, rank=None, observation=NOT_INSTALLED, origin="py-spy")]
    return list(_take_all(program, ranks[:MOST_RANKS], sample, deadline_s))


def _take_all(program: str, ranks: Sequence[RankProcess], sample: int, deadline_s: float) -> Iterator[Evidence]:
    for rank in ranks:
        observation = _take(program, rank, deadline_s)
        if isinstance(observation, Stack):
            observation = replace(observation, sample=sample, is_native=True)
        evidence = Target(rank=rank, pid=rank.pid, started_ticks=rank.started_ticks).evidence(observation)
        yield replace(evidence, origin=f"py-spy dump --native --pid {rank.pid}")


def _take(program: str, rank: RankProcess, deadline_s: float) -> Stack | Absence:
    if not is_same_process(rank.pid, rank.started_ticks):
        return GONE
    try:
        run = PySpyRun(program, rank.pid, "--native")
    except OSError as error:
        return Absence(reason=AbsenceReason.UNREADABLE, detail=f"no process to read it with: {error.strerror}")
    try:
        while not run.has_ended():
            if time.monotonic() - run.started_at_s > deadline_s:
                left = (
                    f"py-spy (pid {run.pid}) has not finished within {deadline_s:g} s and was left alone: it lets go by itself"
                )
                return Absence(reason=AbsenceReason.TIMED_OUT, detail=left)
            time.sleep(_BETWEEN_LOOKS_S)
        result = read_run(run)
    finally:
        run.leave()
    return result if is_same_process(rank.pid, rank.started_ticks) else GONE
