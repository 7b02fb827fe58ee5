"""What to do next about a Slurm job that has ended or is ending: where its evidence lies, how to see what is stuck. Pure."""

import shlex

from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.watchdog.model.host_names import fold_hosts


def tell_ending(job: SlurmJob) -> str:
    """A job whose processes are being ended, and of which nobody says why."""
    return f"Slurm job {job.spelled} is ending: {_KILLED}"


def tell_next(job: SlurmJob, *, has_evidence: bool) -> tuple[str, ...]:
    """Notes. ``has_evidence``: something that its ranks have left was found."""
    told = []
    if job.is_ending:
        still = f"it is still ending: {_KILLED}; " if job.state.is_over else ""
        over_ssh = f"pardbg scan --job {_typed(job)} --hosts {shlex.quote(fold_hosts(job.nodes))}"
        told.append(f"{still}srun starts nothing in it any more; over ssh: {over_ssh}" if job.nodes else still.rstrip("; "))
    if not has_evidence:
        told.append(
            "what its ranks kept lies in the PARDBG_DIR of the job, or on its nodes in /dev/shm and /tmp:"
            f" PARDBG_DIR=DIR pardbg scan --job {job.spelled}"
        )
        if job.log_path:
            told.append(f"the job's output: tail -n 50 {shlex.quote(job.log_path)}")
    return tuple(filter(None, told))


_KILLED = "its processes are being killed; one that is stuck in the kernel (a dead mount) keeps it so"


def _typed(job: SlurmJob) -> str:
    """The id that its processes know: those of a het job have their leader's."""
    return job.spelled if job.het_job_id is None else str(job.het_job_id)
