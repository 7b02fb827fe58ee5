"""How Slurm's tasks ended, as srun tells, what was killed for memory in a step, and that all of it was cancelled. Pure.

A task may be a rank, or a launcher of several: only its host is known for certain. After the first abort srun and the daemons
of the nodes end the other tasks, so that what is told of those is a consequence; not that memory ran out.
"""

import re
from collections.abc import Iterator

from pardbg.collectors.parsing.launcher_lines import SIGNALS
from pardbg.collectors.parsing.log_lines import line_at
from pardbg.watchdog.model.log_event import CancelledByScheduler, KilledForMemory, LauncherFailure

_TASKS = re.compile(
    r"srun: error: (?P<host>[^\s:]{1,253}): tasks? (?P<tasks>[\d,\[\]-]{1,200}): "
    rf"(?:(?P<memory>Out Of Memory)|(?P<how>{'|'.join(SIGNALS)})|Exited with exit code (?P<code>\d{{1,5}}))"
)
_KILLS = re.compile(
    r"(?:slurmstepd(?:-(?P<host>[\w.-]{1,253}))?: )?error: Detected (?P<kills>\d{1,9}) oom.kill event[^\n]{0,200}",
    re.IGNORECASE,
)
_ABORT = re.compile(r"srun: (?:launch/slurm: \w{1,40}: )?(?:Force )?Terminat(?:ing|ed) |srun: Job step aborted|CANCELLED AT ")
_CANCELLED = re.compile(
    r"error: \*\*\* (?:JOB|STEP) \S{1,60} ON \S{1,253} CANCELLED AT [\dT:-]{1,30}(?: DUE TO (?P<why>[A-Z ]{1,40}[A-Z]))?"
)
_OF_NO_FAULT = frozenset({None, "JOB REQUEUE"})  # of the others `slurm_notices` tells


def parse_task_ends(text: str) -> Iterator[tuple[int, LauncherFailure | KilledForMemory | CancelledByScheduler]]:
    """Each end that is told, with the place in the text at which it is."""
    if "srun: error: " in text:
        yield from _task_ends(text)
    for match in _KILLS.finditer(text) if "kill event" in text else ():
        told = line_at(text, match.start())
        yield match.end(), KilledForMemory(host=match["host"], at_ns=told.at_ns, text=told.text)
    for match in _CANCELLED.finditer(text) if " CANCELLED AT " in text else ():
        if match["why"] in _OF_NO_FAULT:
            told = line_at(text, match.start())
            yield match.end(), CancelledByScheduler(is_requeued=match["why"] is not None, at_ns=told.at_ns, text=told.text)


def _task_ends(text: str) -> Iterator[tuple[int, LauncherFailure | KilledForMemory]]:
    abort = _ABORT.search(text)
    aborted = abort.start() if abort else len(text)
    for match in _TASKS.finditer(text):
        told = line_at(text, match.start())
        if match["memory"]:
            yield match.end(), KilledForMemory(host=match["host"], is_of_task=True, at_ns=told.at_ns, text=told.text)
        elif match.start() < aborted:
            is_one = match["tasks"].isdecimal()
            yield (
                match.end(),
                LauncherFailure(
                    code=int(match["code"]) if match["code"] else -SIGNALS[match["how"]],
                    host=match["host"],
                    called=f"{'task' if is_one else 'tasks'} {match['tasks']} of Slurm",
                    is_several=not is_one,
                    at_ns=told.at_ns,
                    text=told.text,
                ),
            )
