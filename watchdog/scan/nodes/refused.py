"""No node could be looked at: whether that is because the Slurm job has ended since Slurm was asked, and what to try."""

import time
from collections.abc import Collection

from pardbg.collectors.jobs.job_ids import read_job_name
from pardbg.collectors.jobs.slurm.find import find_slurm_job
from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.watchdog.errors import AmbiguousJobError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.scan.nodes.reaching import Route

ASK_AGAIN_S = 5.0

_SRUN = "srun"
_FOR_AGENTS = "see that `pardbg agent` runs there (--agents), and that it knows you (--tls-cert, --token-file, --munge)"


def ended_meanwhile(route: Route, job: str | None, absences: Collection[Absence]) -> SlurmJob | None:
    """What Slurm says now of a job in which srun starts nothing since it is gone; None if it runs, or that is not why.

    Deadline: `ASK_AGAIN_S`. Cost: that of `find_slurm_job`, and only where srun says so.
    """
    is_srun = route.way is not None and route.way.name == _SRUN
    if job is None or not is_srun or not any(absence.reason is AbsenceReason.GONE for absence in absences):
        return None
    try:
        found = find_slurm_job(read_job_name(job, ()).name, time.monotonic() + ASK_AGAIN_S)
    except AmbiguousJobError:
        return None
    if not isinstance(found, SlurmJob):
        return None
    return found if found.is_ending or not found.state.holds_nodes else None


def remedy_of(route: Route, absences: Collection[Absence]) -> str:
    """What the user can do about nodes that refuse; empty for the usual."""
    if route.agents is not None:
        return _FOR_AGENTS
    if route.slurm_job is None or route.way is None or route.way.name != _SRUN:
        return ""
    reasons = {absence.reason for absence in absences}
    if AbsenceReason.DENIED in reasons:
        owner = f", {route.slurm_job.user}," if route.slurm_job.user else ""
        return f"ask its owner{owner} or root to scan it"
    return f"see squeue --jobs={route.slurm_job.srun_job_id}: has it just ended?" if AbsenceReason.GONE in reasons else ""
