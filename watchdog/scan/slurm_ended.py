"""A Slurm job that has ended: what Slurm says of its end, and what its ranks have left on this machine and in its output."""

import time

from pardbg.collectors.ended.script_output import evidence_of, read_script_output
from pardbg.collectors.jobs.query import JobQuery
from pardbg.collectors.jobs.slurm.ending import SlurmEnding, ending_of
from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.collectors.reading_job import ScriptOutput
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.evidence import Evidence, SchedulerEnding
from pardbg.watchdog.model.names import CollectorName, JobSource
from pardbg.watchdog.scan.scan import Progress, Scanned, Settings
from pardbg.watchdog.scan.scheduler_ended import Told, scan_what_is_left
from pardbg.watchdog.scan.slurm_notices import complete


def scan_slurm_ended(job: SlurmJob, query: JobQuery, settings: Settings, progress: Progress) -> Scanned:
    """Diagnoses it from that.

    Raises:
        InputError: if the job has neither run nor ended: it waits in the queue.
    """
    began_s = time.monotonic()
    ending = ending_of(job)
    if ending is None:
        why = f" ({job.reason})" if job.reason else ""
        raise InputError(f"Slurm job {job.spelled} is {job.raw_state.lower()}{why}", remedy="scan it when it runs")
    progress("reading the end of the job's output")
    output = read_script_output(job.log_path) if job.log_path else ScriptOutput()
    heard = complete(job, output.notices) if isinstance(output, ScriptOutput) else job
    told_ending = _evidence(heard, ending_of(heard) or ending, is_hearsay=heard is not job)
    told = Told(job.spelled, JobSource.SLURM, _commands(job), (*evidence_of(output, job.log_path), told_ending), (), began_s)
    return scan_what_is_left(told, query, settings, progress)


def _evidence(job: SlurmJob, ending: SlurmEnding, *, is_hearsay: bool) -> Evidence:
    return Evidence(
        source=CollectorName.HOST,
        rank=None,
        observed_at=ending.at,
        observation=SchedulerEnding(
            claim=ending.claim,
            cause=ending.cause,
            at=ending.at,
            hosts=ending.nodes,
            advice=ending.advice,
            is_from_outside=ending.is_by_slurm,
            is_hearsay=is_hearsay,
        ),
        origin=f"{_commands(job)}, {job.log_path}" if is_hearsay else _commands(job),
    )


def _commands(job: SlurmJob) -> str:
    return ", ".join(job.told_by) or "Slurm"
