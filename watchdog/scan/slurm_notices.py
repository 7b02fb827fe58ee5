"""What Slurm wrote into a job's output, where its commands do not say why it ended the job (accounting is off). Pure.

Anybody can print such lines: they support, and do not establish.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.collectors.parsing.slurm_notices import NoticeKind, SlurmNotice
from pardbg.collectors.parsing.slurm_record import SlurmRecord, SlurmState

_STATES = {
    NoticeKind.PREEMPTED: SlurmState.PREEMPTED,
    NoticeKind.TIME_LIMIT: SlurmState.TIMEOUT,
    NoticeKind.NODE_FAILURE: SlurmState.NODE_FAIL,
}


def complete(job: SlurmJob, notices: Sequence[SlurmNotice]) -> SlurmJob:
    """The job with how its last run ended and which nodes failed under it, as far as Slurm's commands left that open."""
    numbers = {job.job_id, job.srun_job_id, *(part.job_id for part in job.parts), None}
    own = [notice for notice in notices if notice.job_id in numbers]
    told = [notice for notice in own if notice.kind in _STATES]
    if job.previous_run is None and job.state is SlurmState.PENDING and job.restarts and told:
        last = next((notice for notice in reversed(told) if notice.is_whole_job), told[-1])
        job = replace(job, previous_run=SlurmRecord(job_id=job.job_id, state=_STATES[last.kind]))
    failed = tuple(dict.fromkeys(notice.node for notice in told if notice.job_id is None and notice.node))
    run = job.previous_run.state if job.previous_run is not None else job.state
    return replace(job, lost_nodes=failed) if failed and not job.lost_nodes and run is SlurmState.NODE_FAIL else job
