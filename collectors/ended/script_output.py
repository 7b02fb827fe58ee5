"""What a batch job has left in the file that its script wrote to: last words of ranks, and of the scheduler itself.

Cost: one child process of about 80 ms and 20 MB, which reads the end of one file. Deadline: the caller's; the file may lie on a
dead mount, and the child is then abandoned. Nothing is left behind.
"""

import os
from collections.abc import Iterator, Sequence

from pardbg.collectors.live.moment import as_rfc3339
from pardbg.collectors.reading import Reader, Task
from pardbg.collectors.reading_job import ScriptOutput, ScriptOutputRequest
from pardbg.collectors.reading_protocol import FileRead
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.names import AbsenceReason, CollectorName

WITHIN_S = 5.0
_LOST = Absence(reason=AbsenceReason.UNREADABLE, detail="the process that read the job's output gave no answer")


def read_script_output(
    path: str, *, within_s: float = WITHIN_S, command: Sequence[str] | None = None
) -> ScriptOutput | Absence:
    """Reads it, or says why not.

    Args:
        path: as the scheduler names it.
        within_s: how long that may take.
        command: what a child of the reader runs.
    """
    with Reader(deadline_s=within_s, command=command) as reader:
        task = Task(request=ScriptOutputRequest(path=os.fsencode(path)), path=path)
        reply = reader.ask([task], within_s=within_s).get(path)
    if isinstance(reply, ScriptOutput):
        return reply
    problem = reply.problem if isinstance(reply, FileRead) else None
    return Absence(reason=problem.reason, detail=f"the job's output: {problem.detail}") if problem is not None else _LOST


def evidence_of(output: ScriptOutput | Absence, path: str) -> Iterator[Evidence]:
    """What it says of ranks: those that sign their lines, since the name of the file says nothing of a rank."""
    source = CollectorName.RANK_LOG
    if isinstance(output, Absence):
        yield Evidence(source=source, rank=None, observation=output, origin=path)
        return
    only = next(iter(output.signed_by)) if len(output.signed_by) == 1 else None
    for found in output.tracebacks:
        rank = found.rank if found.rank is not None else only
        if rank is not None:
            seen_at = as_rfc3339(output.mtime_ns)
            yield Evidence(source=source, rank=rank, observed_at=seen_at, observation=found.traceback, origin=path)
