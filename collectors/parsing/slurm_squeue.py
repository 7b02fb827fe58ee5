"""``squeue --noheader --format=SQUEUE_FORMAT``: the form that every version has. The name, free text, comes last."""

from pardbg.collectors.parsing.slurm_record import SlurmRecord
from pardbg.collectors.parsing.slurm_state import read_canceller, read_state
from pardbg.collectors.parsing.slurm_values import read_duration, read_number, read_text, read_time
from pardbg.watchdog.errors import ParseError

SQUEUE_FORMAT = "%A|%F|%K|%i|%T|%u|%U|%N|%S|%e|%l|%r|%j"
_FIELDS = SQUEUE_FORMAT.count("|")


def parse_squeue(text: str) -> tuple[SlurmRecord, ...]:
    """All jobs of the text. How often a job was restarted, how it exited and how many tasks it has is not said.

    Raises:
        ParseError: if a line is not in that form.
    """
    return tuple(_parse_line(line) for line in text.split("\n") if line.strip())


def _parse_line(line: str) -> SlurmRecord:
    parts = line.split("|", _FIELDS)
    if len(parts) <= _FIELDS or (job_id := read_number(parts[0])) is None:
        raise ParseError(f"not a line of squeue's {SQUEUE_FORMAT}")
    _, array_job, task, spelled, state, user, uid, nodes, start, end, limit, reason, name = parts
    leader, is_het, offset = spelled.partition("+")
    is_array = read_text(task) != ""
    return SlurmRecord(
        job_id=job_id,
        array_job_id=read_number(array_job) if is_array else None,
        array_task=task if is_array else "",
        het_job_id=read_number(leader) if is_het else None,
        het_offset=read_number(offset) if is_het else None,
        name=name,
        user=user,
        uid=read_number(uid),
        state=read_state(state),
        raw_state=state,
        reason=read_text(reason),
        node_list=read_text(nodes),
        started_at=read_time(start),
        ended_at=read_time(end),
        time_limit_s=read_duration(limit),
        cancelled_by=read_canceller(state),
    )
