"""``scontrol --oneliner show job``: a line a job, ``Key=value`` with values that hold blanks and equals signs.

The keys are known, in Slurm's own order, and the job's name is the only free text before those that are read here: it ends at
the first ``UserId=`` that is followed by a ``GroupId=``. Free texts behind (comment, command) cannot change what was found
before. (A name that imitates all of Slurm's words can: it deceives about its own job. JSON does not have this weakness.)
"""

import re

from pardbg.collectors.parsing.slurm_record import SlurmRecord
from pardbg.collectors.parsing.slurm_state import read_state
from pardbg.collectors.parsing.slurm_values import read_duration, read_exit, read_number, read_text, read_time
from pardbg.watchdog.errors import ParseError

_START = re.compile(r"^JobId=(?=\d)", re.MULTILINE | re.ASCII)
_HEAD = re.compile(
    r"(?P<id>\d+) (?:ArrayJobId=(?P<array>\d+) ArrayTaskId=(?P<task>\S+) (?:ArrayTaskThrottle=\S+ )?)?"
    r"(?:HetJobId=(?P<het>\d+) HetJobOffset=(?P<offset>\d+) )?JobName=(?P<name>.*?)(?: HetJobIdSet=\S+)? "
    r"UserId=(?P<user>\S+?)\((?P<uid>\d+)\) GroupId=\S+ (?P<rest>.*)",
    re.DOTALL | re.ASCII,
)
_KEY = re.compile(
    r"(?:^|\s)(?P<key>JobState|Reason|Restarts|ExitCode|TimeLimit|StartTime|EndTime|NodeList|FailedNode|NumTasks)=(?P<value>\S*)"
)
_LOG = re.compile(
    r"\sStdOut=(?P<path>.*?)"
    r"(?=\s+(?:Power|TresPer\w+|MailUser|MailType|NtasksPerTRES|CpusPerTres|MemPerTres|ResvName)=|\s*$)"
)


def parse_scontrol_jobs(text: str) -> tuple[SlurmRecord, ...]:
    """All jobs of the text: several for an array or a het job.

    Raises:
        ParseError: if it is not what `scontrol` writes.
    """
    starts = [match.end() for match in _START.finditer(text)]
    if not starts:
        raise ParseError("no JobId= at the start of a line: not what scontrol show job writes")
    ends = [*(start - len("JobId=") for start in starts[1:]), len(text)]
    return tuple(_parse_job(text[start:end]) for start, end in zip(starts, ends, strict=True))


def _parse_job(line: str) -> SlurmRecord:
    head = _HEAD.match(line)
    if head is None:
        raise ParseError("a job without JobName= and UserId=")
    values: dict[str, str] = {}
    for match in _KEY.finditer(head["rest"]):
        values.setdefault(match["key"], match["value"])
    if "JobState" not in values:
        raise ParseError(f"job {head['id']} has no JobState=")
    log = _LOG.search(head["rest"])
    exit_code, signal = read_exit(values.get("ExitCode", ""))
    return SlurmRecord(
        job_id=int(head["id"]),
        array_job_id=read_number(head["array"]),
        array_task=head["task"] or "",
        het_job_id=read_number(head["het"]),
        het_offset=read_number(head["offset"]),
        name=head["name"],
        user=head["user"],
        uid=int(head["uid"]),
        state=read_state(values["JobState"]),
        raw_state=values["JobState"],
        reason=read_text(values.get("Reason")),
        node_list=read_text(values.get("NodeList")),
        failed_nodes=read_text(values.get("FailedNode")),
        n_tasks=read_number(values.get("NumTasks")),
        started_at=read_time(values.get("StartTime")),
        ended_at=read_time(values.get("EndTime")),
        time_limit_s=read_duration(values.get("TimeLimit", "")),
        exit_code=exit_code,
        signal=signal,
        restarts=read_number(values.get("Restarts")),
        log_path=read_text(log["path"]) if log else "",
    )
