"""What Slurm itself writes into the output of a job when it ends it: the last witness where accounting is off.

``slurmstepd-n1: error: *** JOB 13 ON n1 CANCELLED AT 2026-11-30T02:55:47 DUE TO PREEMPTION ***`` says why even after the job
has been put back into the queue; ``srun: error: Node failure on n2`` names the node. Anybody can print such lines: they
support, and do not establish.
"""

import re
from enum import Enum

from pardbg.watchdog.model.base import Noun

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
