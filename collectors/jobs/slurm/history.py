"""What accounting knows of the runs of a job: who cancelled it, why it ends, how a run ended before it was requeued. Pure."""

from collections.abc import Sequence

import msgspec

from pardbg.collectors.parsing.slurm_record import SlurmRecord, SlurmState

_BY_REASON = {
    "TimeLimit": SlurmState.TIMEOUT,
    "DeadLine": SlurmState.DEADLINE,
    "OutOfMemory": SlurmState.OUT_OF_MEMORY,
    "NonZeroExitCode": SlurmState.FAILED,
}
"""What the controller gives as the reason of a job that is completing, where it is one of its end."""


def with_canceller(record: SlurmRecord, accounted: Sequence[SlurmRecord]) -> SlurmRecord:
    """The record with the user who cancelled it, where accounting says so."""
    named = [run.cancelled_by for run in _runs_of(record, accounted) if run.cancelled_by is not None]
    return msgspec.structs.replace(record, cancelled_by=named[-1]) if named else record


def with_known_end(record: SlurmRecord, accounted: Sequence[SlurmRecord]) -> SlurmRecord:
    """The record of a job that is completing, with the state in which it will be when that is over, if anybody says it."""
    runs = _runs_of(record, accounted)
    said = runs[-1].state if runs and runs[-1].state.is_over else _BY_REASON.get(record.reason, record.state)
    if not said.is_over or said is SlurmState.COMPLETED:
        return record
    return with_canceller(msgspec.structs.replace(record, state=said), accounted)


def last_ended_run(record: SlurmRecord, accounted: Sequence[SlurmRecord]) -> SlurmRecord | None:
    """The newest run that has been and is over; the one that waits now is none."""
    ended = [run for run in _runs_of(record, accounted) if run.started_at and (run.state.is_over or "REQUEUE" in run.raw_state)]
    return ended[-1] if ended else None


def last_runs(accounted: Sequence[SlurmRecord]) -> tuple[SlurmRecord, ...]:
    """Of each job, task or component its newest run, with the number of those before it."""
    whole = [record for record in accounted if not record.step]
    newest = {record.spelled: record for record in whole}
    return tuple(
        msgspec.structs.replace(record, restarts=sum(other.spelled == spelled for other in whole) - 1)
        for spelled, record in newest.items()
    )


def _runs_of(record: SlurmRecord, accounted: Sequence[SlurmRecord]) -> list[SlurmRecord]:
    """By number: a task that has not started yet is spelled as a part of its array."""
    return [run for run in accounted if not run.step and run.job_id == record.job_id]
