"""A Slurm job that has ended or is ending: what Slurm says of it, and what its ranks have left here and in its output."""

import dataclasses
import time

from msgspec.structs import replace

from pardbg.collectors.ended.script_output import evidence_of, read_script_output
from pardbg.collectors.jobs.query import JobQuery
from pardbg.collectors.jobs.slurm.ending import SlurmEnding, ending_of
from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.collectors.reading_job import ScriptOutput
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.evidence import Evidence, SchedulerEnding
from pardbg.watchdog.model.names import CollectorName, JobSource
from pardbg.watchdog.scan.ended import scan_ended
from pardbg.watchdog.scan.scan import Progress, Scanned, Settings
from pardbg.watchdog.scan.scheduler_ended import Told, scan_what_is_left
from pardbg.watchdog.scan.slurm_next import tell_ending, tell_next
from pardbg.watchdog.scan.slurm_notices import complete
from pardbg.watchdog.scan.unseen import tell_unseen


def scan_slurm_ended(job: SlurmJob, query: JobQuery, settings: Settings, progress: Progress) -> Scanned:
    """Diagnoses it from that.

    Raises:
        InputError: if the job has neither run nor ended: it waits in the queue.
    """
    began_s = time.monotonic()
    ending = ending_of(job)
    if ending is None and job.is_ending:
        return _scan_ending(job, query, settings, progress)
    if ending is None:
        why = f" ({job.reason})" if job.reason else ""
        raise InputError(f"Slurm job {job.spelled} is {job.raw_state.lower()}{why}", remedy="scan it when it runs")
    progress("reading the end of the job's output")
    output = read_script_output(job.log_path) if job.log_path else ScriptOutput()
    heard = complete(job, output.notices) if isinstance(output, ScriptOutput) else job
    told_ending = _evidence(heard, ending_of(heard) or ending, is_hearsay=heard is not job)
    told = Told(job.spelled, JobSource.SLURM, _commands(job), (*evidence_of(output, job.log_path), told_ending), (), began_s)
    scanned = scan_what_is_left(told, query, settings, progress)
    report = scanned.report
    following = tell_next(job, has_evidence=report.coverage.ranks_seen > 0)
    return dataclasses.replace(scanned, report=replace(report, notes=(*following, *report.notes)))  # the last is the headline


def _scan_ending(job: SlurmJob, query: JobQuery, settings: Settings, progress: Progress) -> Scanned:
    """Nobody says why it ends: undetermined, unless its ranks have left something here."""
    left = scan_ended(query, settings, progress)
    if left is not None:
        return left.with_notes((tell_ending(job), *tell_next(job, has_evidence=True)))
    unseen = tell_unseen(job.spelled, JobSource.SLURM, tell_ending(job), {}, settings)
    return unseen.with_notes(tell_next(job, has_evidence=False))


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
