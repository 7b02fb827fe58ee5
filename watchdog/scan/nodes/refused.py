"""No node could be looked at: whether that is because the Slurm job has ended since Slurm was asked, and what to try."""

import time
from collections import Counter
from collections.abc import Collection

from pardbg.collectors.jobs.job_ids import read_job_name
from pardbg.collectors.jobs.slurm.find import find_slurm_job
from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.watchdog.errors import AmbiguousJobError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.scan.nodes.reaching import Route

ASK_AGAIN_S = 5.0

_MOST_REASONS = 3
_SRUN = "srun"
_AS_IT_SAYS = "do as it says, or ask an admin of that node"
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


def words_of(route: Route, said: str, absences: Collection[Absence]) -> str:
    """Why nothing was seen, in a sentence: ``said``, and plainer where no agent has answered."""
    count = len(route.agents.addresses) + len(route.agents.unreached) if route.agents is not None else 0
    if not absences or len(absences) != count:
        return said
    reasons = Counter(absence.detail for absence in absences).most_common(_MOST_REASONS)
    why = reasons[0][0] if len(reasons) == 1 else "; ".join(f"{detail} ({times})" for detail, times in reasons)
    return f"the agent did not answer: {why}" if count == 1 else f"none of the {count} agents answered: {why}"


def remedy_of(route: Route, absences: Collection[Absence]) -> str:
    """What the user can do about nodes that refuse; empty for the usual."""
    if route.agents is not None:
        is_told = bool(absences) and all(absence.reason is AbsenceReason.DENIED for absence in absences)
        return _AS_IT_SAYS if is_told else _FOR_AGENTS
    if route.slurm_job is None or route.way is None or route.way.name != _SRUN:
        return ""
    reasons = {absence.reason for absence in absences}
    if AbsenceReason.DENIED in reasons:
        owner = f", {route.slurm_job.user}," if route.slurm_job.user else ""
        return f"ask its owner{owner} or root to scan it"
    return f"see squeue --jobs={route.slurm_job.srun_job_id}: has it just ended?" if AbsenceReason.GONE in reasons else ""
