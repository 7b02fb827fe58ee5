"""The first question: what does the controller know of this job? By `scontrol`, else by `squeue`."""

import re

from pardbg.collectors.jobs.slurm.commands import list_job, list_job_as_json, show_job, tell_version
from pardbg.collectors.jobs.slurm.interview import Interview
from pardbg.collectors.jobs.slurm.query import SlurmQuery
from pardbg.collectors.parsing.slurm_json import parse_json_jobs
from pardbg.collectors.parsing.slurm_record import SlurmRecord
from pardbg.collectors.parsing.slurm_scontrol_job import parse_scontrol_jobs
from pardbg.collectors.parsing.slurm_squeue import parse_squeue
from pardbg.watchdog.model.names import AbsenceReason

_VERSION = re.compile(r"slurm(?:-wlm)? (\d+)\.(\d+)", re.ASCII)
_JSON_OBEYS_SINCE = (23, 2)
_WORTH_ASKING_AGAIN = frozenset({AbsenceReason.NOT_INSTALLED, AbsenceReason.UNREADABLE, AbsenceReason.UNSUPPORTED})


def list_records(interview: Interview, query: SlurmQuery) -> tuple[SlurmRecord, ...] | None:
    """All records the controller has for the id; None if it gave none, and the interview knows why."""
    records = interview.ask(show_job(query.name), lambda answer: parse_scontrol_jobs(answer.text), is_extra=False)
    if records is not None or interview.unknowns[-1].reason not in _WORTH_ASKING_AGAIN:
        return records
    version = interview.ask(tell_version(), lambda answer: read_version(answer.text))
    if version is not None and version >= _JSON_OBEYS_SINCE:
        return interview.ask(list_job_as_json(query.job_id), lambda answer: parse_json_jobs(answer.output), is_extra=False)
    return interview.ask(list_job(query.job_id), lambda answer: parse_squeue(answer.text), is_extra=False)


def read_version(text: str) -> tuple[int, int]:
    """Year and month of ``slurm 23.02.6``; zeros if it does not say."""
    match = _VERSION.search(text)
    return (int(match[1]), int(match[2])) if match else (0, 0)
