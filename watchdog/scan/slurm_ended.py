"""A Slurm job that has ended: what Slurm says of its end, and what its ranks have left on this machine and in its output."""

import time
from pathlib import Path

from msgspec.structs import replace

from pardbg.collectors.files import collect_files
from pardbg.collectors.jobs.query import JobQuery
from pardbg.collectors.jobs.slurm.ending import SlurmEnding, ending_of
from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.evidence import Evidence, SchedulerEnding
from pardbg.watchdog.model.names import CollectorName, JobSource
from pardbg.watchdog.scan.scan import Progress, Scanned, Settings
from pardbg.watchdog.scan.scheduler_ended import Told, scan_what_is_left


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
    logged, notes = _read_output(job, progress)
    told = Told(job.spelled, JobSource.SLURM, _commands(job), (*logged, _evidence(job, ending)), notes, began_s)
    return scan_what_is_left(told, query, settings, progress)


def _evidence(job: SlurmJob, ending: SlurmEnding) -> Evidence:
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
        ),
        origin=_commands(job),
    )


def _read_output(job: SlurmJob, progress: Progress) -> tuple[tuple[Evidence, ...], tuple[str, ...]]:
    """What the batch script's output tells of ranks that sign their lines."""
    if not job.log_path:
        return (), ()
    try:
        collected = collect_files([Path(job.log_path)], progress)
    except InputError:
        return (), (f"the job's output {job.log_path} is not there, or may not be read",)
    told = tuple(item for item in collected.evidence if item.rank is not None)
    return tuple(replace(item, origin=job.log_path) for item in told), ()


def _commands(job: SlurmJob) -> str:
    return ", ".join(job.told_by) or "Slurm"
