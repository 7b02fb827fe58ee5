"""Of several records that answer to one id, those that are meant. Pure.

An array's number stands for all its tasks, a het job's for its components. One task that runs is meant; several are a question
to the user. The components of a het job are one job.
"""

from collections.abc import Sequence

from pardbg.collectors.jobs.slurm.query import SlurmQuery
from pardbg.collectors.parsing.slurm_record import SlurmRecord
from pardbg.watchdog.errors import AmbiguousJobError

MOST_CHOICES = 20


def choose_records(records: Sequence[SlurmRecord], query: SlurmQuery) -> tuple[SlurmRecord, ...]:
    """One record, the components of one het job by offset, or none.

    Raises:
        AmbiguousJobError: if several tasks of an array may be meant.
    """
    found = [record for record in records if not record.step and _answers(record, query)]
    if query.het_offset is None and all(record.het_job_id == query.job_id for record in found):
        return tuple(sorted(found, key=lambda record: record.het_offset or 0))
    tasks = [record for record in found if record.state.holds_nodes] or found
    if len({record.spelled for record in tasks}) > 1:
        choices = sorted(tasks, key=lambda record: (record.task_number is None, record.task_number or 0))[:MOST_CHOICES]
        raise AmbiguousJobError(
            f"Slurm job {query.job_id} is an array of which {len(tasks)} tasks may be meant",
            tuple(f"pardbg scan --job slurm:{record.spelled}" for record in choices if record.task_number is not None),
        )
    return tuple(tasks[-1:])


def _answers(record: SlurmRecord, query: SlurmQuery) -> bool:
    if query.het_offset is not None:
        return (record.het_job_id, record.het_offset) == (query.job_id, query.het_offset)
    if query.array_task is None:
        return query.job_id in {record.job_id, record.array_job_id, record.het_job_id}
    return record.array_job_id == query.job_id and record.task_number in {None, query.array_task}
