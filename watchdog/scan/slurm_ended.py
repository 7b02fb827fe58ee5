"""A Slurm job that has ended: what Slurm says of its end, and what its ranks have left on this machine and in its output."""

import time
from pathlib import Path

from msgspec.structs import replace

from pardbg.collectors.files import collect_files
from pardbg.collectors.jobs.query import JobQuery
from pardbg.collectors.jobs.slurm.ending import SlurmEnding, ending_of
from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.collectors.live.moment import now_rfc3339
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence, JobDescription, SchedulerEnding
from pardbg.watchdog.model.names import CollectorName, JobSource
from pardbg.watchdog.scan.ended import scan_ended
from pardbg.watchdog.scan.scan import Progress, Scanned, Settings
from pardbg.watchdog.store.view import EvidenceView


def scan_slurm_ended(job: SlurmJob, query: JobQuery, settings: Settings, progress: Progress) -> Scanned:
    """Diagnoses it: the scheduler's word comes before anything about ranks.

    Raises:
        InputError: if the job has neither run nor ended: it waits in the queue.
    """
    began_s = time.monotonic()
    ending = ending_of(job)
    if ending is None:
        why = f" ({job.reason})" if job.reason else ""
        raise InputError(f"Slurm job {job.spelled} is {job.raw_state.lower()}{why}", remedy="scan it when it runs")
    left = scan_ended(query, settings, progress)
    progress("reading the end of the job's output")
    logged, notes = _read_output(job, progress)
    own = left.evidence if left is not None else (_describe(job),)
    evidence = (*own, *logged, _evidence(job, ending))
    circumstances = Circumstances(
        decided_at=now_rfc3339(),
        took_s=round(time.monotonic() - began_s, 3),
        source=JobSource.SLURM,
        sampled_at=left.report.sampled_at if left is not None else (),
        notes=(*notes, *(left.report.notes if left is not None else ())),
        rules=settings.rules,
    )
    return Scanned(judge(EvidenceView.of(evidence), circumstances), evidence)


def _describe(job: SlurmJob) -> Evidence:
    description = JobDescription(job=job.spelled, world_size=None)
    return Evidence(source=CollectorName.HOST, rank=None, observation=description, origin=_commands(job))


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
