"""Takes the Python stacks of ranks and of their children with py-spy, without stopping them.

py-spy reads the processes' memory while they run. What it reads of a running thread may be torn: then it fails, and is tried
again up to `_MOST_ATTEMPTS` times. Cost: 15-40 ms of one processor a process, as many at once as there are processors, at most
`_MOST_AT_ONCE`. Deadline: ``deadline_s`` a process, all attempts together; then that py-spy is killed, which the process does
not notice. Leaves nothing behind, also after Ctrl-C. Privilege: that of ptrace.
"""

import os
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from msgspec.structs import replace

from pardbg.collectors.live.groups import describe_groups
from pardbg.collectors.live.identity import is_same_process, read_living
from pardbg.collectors.live.moment import now_rfc3339
from pardbg.collectors.live.py_spy import PySpyRun, find_py_spy, interrupts_held
from pardbg.collectors.live.py_spy_errors import explain_failure
from pardbg.collectors.live.python_children import choose_children
from pardbg.collectors.parsing.stacks import parse_stacks
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Absence, Evidence, Stack
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.world import RankProcess

DEADLINE_S = 10.0
_MOST_ATTEMPTS = 3
_MOST_AT_ONCE = 8
_BETWEEN_LOOKS_S = 0.003
NOT_INSTALLED = Absence(
    reason=AbsenceReason.NOT_INSTALLED, detail="py-spy is not there, so no stack can be taken: pip install py-spy"
)
GONE = Absence(reason=AbsenceReason.GONE, detail="the process has ended, or its number belongs to another one now")


@dataclass(frozen=True, eq=False)
class Target:
    """A process whose stack is wanted; ``child`` is empty for the rank itself."""

    rank: RankProcess
    pid: int
    started_ticks: int
    child: str = ""

    def evidence(self, observation: Stack | Absence) -> Evidence:
        """Words an observation as evidence of its rank."""
        return Evidence(
            source=CollectorName.STACKS,
            rank=self.rank.rank,
            host=self.rank.host,
            observed_at=now_rfc3339(),
            observation=observation,
            origin=f"py-spy dump --nonblocking --locals --pid {self.pid}",
        )


@dataclass(eq=False)
class _Trial:
    """A running py-spy, and the attempts before it."""

    target: Target
    run: PySpyRun
    attempt: int
    give_up_at_s: float


def take_stacks(
    ranks: Sequence[RankProcess],
    sample: int,
    looked: Iterable[Evidence] = (),
    *,
    world_size: int | None = None,
    deadline_s: float = DEADLINE_S,
) -> list[Evidence]:
    """One `Stack` a rank and Python child, or the absence that says why there is none; the ranks first, in their order.

    Args:
        ranks: the processes.
        sample: number of this look.
        looked: what `look_at_processes` gave: whose children to take too. A child that ends meanwhile is no absence.
        world_size: of the job, against which the sizes of groups are checked.
        deadline_s: after which we stop waiting for one process.
    """
    program = find_py_spy()
    if program is None:
        return [Evidence(source=CollectorName.STACKS, rank=None, observation=NOT_INSTALLED, origin="py-spy")]
    targets = [Target(rank=rank, pid=rank.pid, started_ticks=rank.started_ticks) for rank in ranks]
    targets += [
        Target(rank=own.rank, pid=own.child.pid, started_ticks=own.started_ticks, child=f"{own.child.name} {own.child.pid}")
        for own in choose_children(ranks, looked)
    ]
    evidence: dict[int, Evidence] = {}
    with closing(_run_all(program, targets, deadline_s)) as finished:
        for target, observation in finished:
            if isinstance(observation, Stack):
                evidence[target.pid] = target.evidence(replace(observation, sample=sample, child=target.child))
            elif not (target.child and observation is GONE):
                evidence[target.pid] = target.evidence(observation)
    return describe_groups((evidence[target.pid] for target in targets if target.pid in evidence), ranks, world_size)


def _run_all(
    program: str, targets: Iterable[Target], deadline_s: float
) -> Generator[tuple[Target, Stack | Absence], None, None]:
    """Yields each target once, as it is finished."""
    waiting = deque(targets)
    running: list[_Trial] = []
    try:
        while waiting or running:
            with interrupts_held():  # between the start of a py-spy and its place in the list
                finished = [*_check_all(program, running), *_fill(program, waiting, running, deadline_s)]
            yield from finished
            if running:
                time.sleep(_BETWEEN_LOOKS_S)
    finally:
        for trial in running:
            trial.run.close()


def _fill(
    program: str, waiting: deque[Target], running: list[_Trial], deadline_s: float
) -> Iterator[tuple[Target, Stack | Absence]]:
    """Starts as many as may run; yields those that cannot be started."""
    while waiting and len(running) < min(os.cpu_count() or 1, _MOST_AT_ONCE):
        target = waiting.popleft()
        trial = _start(program, target, 1, time.monotonic() + deadline_s)
        if isinstance(trial, Absence):
            yield target, trial
        else:
            running.append(trial)


def _check_all(program: str, running: list[_Trial]) -> Iterator[tuple[Target, Stack | Absence]]:
    """Yields those that are finished; those that failed start anew."""
    for trial in list(running):
        result = _check(program, trial)
        if result is None:
            continue
        running.remove(trial)
        if isinstance(result, _Trial):
            running.append(result)
        else:
            yield trial.target, result


def _start(program: str, target: Target, attempt: int, give_up_at_s: float) -> _Trial | Absence:
    if not is_same_process(target.pid, target.started_ticks):
        return GONE
    try:
        run = PySpyRun(program, target.pid, "--nonblocking")
    except OSError as error:
        return Absence(reason=AbsenceReason.UNREADABLE, detail=f"no process to read it with: {error.strerror}")
    return _Trial(target=target, run=run, attempt=attempt, give_up_at_s=give_up_at_s)


def _check(program: str, trial: _Trial) -> _Trial | Stack | Absence | None:
    """None: still at work. Else its result, or the next attempt."""
    if not trial.run.has_ended():
        if time.monotonic() < trial.give_up_at_s:
            return None
        trial.run.close()
        detail = "py-spy gave no stack before the deadline: the process holds a lock in the kernel"
        return Absence(reason=AbsenceReason.TIMED_OUT, detail=detail)
    result = read_run(trial.run)
    trial.run.close()
    stat = read_living(trial.target.pid)
    if stat is None or stat.started_ticks != trial.target.started_ticks:
        return GONE
    is_final = trial.attempt >= _MOST_ATTEMPTS
    if isinstance(result, Stack) and (is_final or not _is_torn(result)):
        return result if stat.state == "R" else _put_to_rest(result)
    if isinstance(result, Absence) and (is_final or result.reason is not AbsenceReason.UNREADABLE):
        return result
    return _start(program, trial.target, trial.attempt + 1, trial.give_up_at_s)


def read_run(run: PySpyRun) -> Stack | Absence:
    """What a finished py-spy has given."""
    if run.exit_code != 0:
        return explain_failure(run.errors)
    try:
        return parse_stacks(run.output)
    except ParseError:
        return explain_failure(run.errors)


def _put_to_rest(stack: Stack) -> Stack:
    """Before Python 3.11 a non-blocking py-spy cannot tell which kernel thread is which, and takes sleeping ones for active."""
    main = stack.main_thread
    threads = (replace(thread, is_active=False) if thread is main else thread for thread in stack.threads)
    return replace(stack, threads=tuple(threads))


def _is_torn(stack: Stack) -> bool:
    """A main thread without frames is possible, but rare, and mostly a thread read while it was called or returned."""
    return stack.main_thread is None or not stack.main_thread.frames
