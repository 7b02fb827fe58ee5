"""``sacct --parsable2 --noheader --delimiter=SACCT_DELIMITER --format=SACCT_FORMAT``: jobs that are gone, with their steps.

The job's name comes last, for it may hold anything. Times are seconds since 1970 (``SLURM_TIME_FORMAT=%s``).
"""

import re

from pardbg.collectors.parsing.slurm_record import SlurmRecord
from pardbg.collectors.parsing.slurm_state import read_canceller, read_state
from pardbg.collectors.parsing.slurm_values import read_exit, read_number, read_text, read_time
from pardbg.watchdog.errors import ParseError

SACCT_FORMAT = "JobID,JobIDRaw,User,UID,State,ExitCode,Start,End,TimelimitRaw,NTasks,NodeList,Reason,JobName"
SACCT_DELIMITER = "\x1f"
_FIELDS = SACCT_FORMAT.count(",")
_ID = re.compile(
    r"(?P<job>\d+)(?:_(?:(?P<task>\d+)|\[(?P<tasks>[^\]]*)\])|\+(?P<offset>\d+))?(?:\.(?P<step>[\w+]+))?", re.ASCII
)


def parse_sacct(text: str) -> tuple[SlurmRecord, ...]:
    """Jobs and steps in the order of the text; with ``--duplicates`` also the runs before a job was put back into the queue.

    Raises:
        ParseError: if a line is not in that form.
    """
    return tuple(_parse_line(line) for line in text.split("\n") if line.strip())


def _parse_line(line: str) -> SlurmRecord:
    parts = line.split(SACCT_DELIMITER, _FIELDS)
    spelled = _ID.fullmatch(parts[0])
    if len(parts) <= _FIELDS or spelled is None:
        raise ParseError(f"not a line of sacct's {SACCT_FORMAT}")
    _, raw_id, user, uid, state, code, start, end, limit, tasks, nodes, reason, name = parts
    leader = int(spelled["job"])
    is_array, is_het = spelled["task"] is not None or spelled["tasks"] is not None, spelled["offset"] is not None
    exit_code, signal = read_exit(code)
    minutes = read_number(limit)
    return SlurmRecord(
        job_id=read_number(raw_id.partition(".")[0]) or leader,
        array_job_id=leader if is_array else None,
        array_task=spelled["task"] or spelled["tasks"] or "",
        het_job_id=leader if is_het else None,
        het_offset=read_number(spelled["offset"]),
        name=name,
        user=user,
        uid=read_number(uid),
        state=read_state(state),
        raw_state=state,
        reason=read_text(reason),
        node_list=read_text(nodes),
        n_tasks=read_number(tasks),
        started_at=read_time(start),
        ended_at=read_time(end),
        time_limit_s=None if minutes is None else minutes * 60,
        exit_code=exit_code,
        signal=signal,
        cancelled_by=read_canceller(state),
        step=spelled["step"] or "",
    )
