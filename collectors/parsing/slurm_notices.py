"""What Slurm itself writes into the output of a job when it ends it: the last witness where accounting is off.

``slurmstepd-n1: error: *** JOB 13 ON n1 CANCELLED AT 2026-11-30T02:55:47 DUE TO PREEMPTION ***`` says why even after the job
has been put back into the queue; ``srun: error: Node failure on n2`` names the node. Anybody can print such lines: they
support, and do not establish.
"""

import re
from enum import Enum

from pardbg.collectors.parsing.progress import goes_on
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import SchedulerEnding
from pardbg.watchdog.model.names import Cause

_LONGEST_REST = 1024 * 1024  # characters after the last notice that are looked at
_LINE = re.compile(
    r"^(?:slurmstepd[^:\s]*: error: \*\*\* (?P<what>JOB|STEP) (?P<job>\d+)\S* ON (?P<on>\S+) CANCELLED AT (?P<at>\S+)"
    r"(?: DUE TO (?P<why>[A-Z ]+))?"
    r"|srun: error: Node failure on (?P<failed>\S+)"
    r"|(?:slurmstepd[^:\s]*: )?error: Detected (?P<kills>\d+) oom.kill event)",
    re.MULTILINE | re.ASCII | re.IGNORECASE,
)


class NoticeKind(str, Enum):
    """Why Slurm ended something."""

    CANCELLED = "cancelled"
    PREEMPTED = "preempted"
    TIME_LIMIT = "time-limit"
    NODE_FAILURE = "node-failure"
    OUT_OF_MEMORY = "out-of-memory"


_KINDS = {
    "PREEMPTION": NoticeKind.PREEMPTED,
    "TIME LIMIT": NoticeKind.TIME_LIMIT,
    "NODE FAILURE": NoticeKind.NODE_FAILURE,
    "JOB REQUEUE": NoticeKind.CANCELLED,
}


_CAUSES = {NoticeKind.PREEMPTED: Cause.PREEMPTED, NoticeKind.NODE_FAILURE: Cause.NODE_LOST}
_ENDS = {
    NoticeKind.PREEMPTED: (
        "preempted the job",
        "Requeue it (sbatch --requeue) and let it save a checkpoint when SIGTERM comes.",
    ),
    NoticeKind.NODE_FAILURE: (
        "ended the job since a node failed",
        "Start it again without that node (--exclude), and see sinfo -R.",
    ),
    NoticeKind.TIME_LIMIT: ("ended the job at its time limit", "Ask for more time (--time), or save checkpoints and requeue."),
}


class SlurmNotice(Noun, frozen=True, kw_only=True):
    """One such line. ``at`` as written: the node's local time without a zone. ``is_whole_job``: not only a step of it."""

    kind: NoticeKind
    job_id: int | None = None
    node: str = ""
    at: str = ""
    is_whole_job: bool = False


def parse_notices(text: str) -> tuple[SlurmNotice, ...]:
    """All notices, in the order of the text."""
    return tuple(map(_read, _LINE.finditer(text)))


def tell_ending(text: str) -> SchedulerEnding | None:
    """Why Slurm ended the job, by the last notice that says why.

    None without one, for what is only cancelled, and where the output goes on after it: then it was an earlier run of the job.
    """
    told = [notice for notice in parse_notices(text) if notice.kind in _ENDS]
    if not told or _goes_on(text):
        return None
    last = told[-1]
    words, advice = _ENDS[last.kind]
    failed = tuple(dict.fromkeys(notice.node for notice in told if notice.job_id is None and notice.node))
    return SchedulerEnding(
        claim=f"Slurm {words}, as the job's own output says{': ' + ', '.join(failed) if failed else ''}",
        cause=_CAUSES.get(last.kind),
        hosts=failed,
        advice=(advice,),
        is_from_outside=True,
        is_hearsay=True,
    )


def _goes_on(text: str) -> bool:
    """Whether anything starts or trains after the last notice, in what is appended to the output of a job put back."""
    rest = text[max((match.end() for match in _LINE.finditer(text)), default=0) :][:_LONGEST_REST]
    return any("Starting worker group" in line or goes_on(line) for line in rest.splitlines())


def _read(match: "re.Match[str]") -> SlurmNotice:
    if match["failed"]:
        return SlurmNotice(kind=NoticeKind.NODE_FAILURE, node=match["failed"])
    if match["kills"]:
        return SlurmNotice(kind=NoticeKind.OUT_OF_MEMORY)
    why = (match["why"] or "").strip().upper()
    return SlurmNotice(
        kind=_KINDS.get(why, NoticeKind.CANCELLED),
        job_id=int(match["job"]),
        node=match["on"],
        at=match["at"],
        is_whole_job=match["what"].upper() == "JOB",
    )
