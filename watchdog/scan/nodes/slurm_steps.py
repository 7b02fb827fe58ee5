"""The job or the step that a user means, in words that the processes on the nodes know; and which steps there are. Pure."""

from pardbg.collectors.jobs.slurm.job import JobStep, SlurmJob
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.host_names import fold_hosts_briefly

_MOST_STEPS = 6


def check_step(job: SlurmJob) -> None:
    """Sees that the job runs the step that is meant, as far as Slurm has said which it runs.

    Raises:
        InputError: if not.
    """
    if job.step is not None and job.steps and job.step not in {step.step for step in job.steps}:
        raise InputError(f"Slurm job {job.spelled} runs no step {job.step} now; {tell_steps(job)}", remedy=_remedy(job))


def explain(error: InputError, job: SlurmJob | None) -> InputError:
    """An error of nodes that have found no rank; where a step is meant, which others there are."""
    if job is None or job.step is None or not job.steps:
        return error
    told = f"no rank of step {job.step} of Slurm job {job.spelled} was found on {fold_hosts_briefly(job.nodes)}"
    return InputError(f"{told}; {tell_steps(job)}", remedy=_remedy(job))


def name_on_nodes(job: SlurmJob) -> str | None:
    """What to ask the nodes for; None if that is what the user has typed.

    Processes of a het job know its leader's number, not that of their component.
    """
    if job.het_job_id is None:
        return None
    return f"slurm:{job.het_job_id}" + (f".{job.step}" if job.step is not None else "")


def tell_component(job: SlurmJob | None) -> tuple[str, ...]:
    """A note, where one component of a het job is meant."""
    if job is None or job.het_offset is None:
        return ()
    return (f"this is one component of the het job {job.het_job_id}: pardbg scan --job {job.het_job_id} looks at all of it",)


def tell_steps(job: SlurmJob) -> str:
    """The steps that run."""
    told = [_tell(step) for step in job.steps[:_MOST_STEPS]]
    more = f" and {len(job.steps) - len(told)} more" if len(job.steps) > len(told) else ""
    return f"the job runs {', '.join(told)}{more}"


def _tell(step: JobStep) -> str:
    name = f" ({step.name})" if step.name not in {"", step.step} else ""
    return f"{step.step}{name} on {fold_hosts_briefly(step.nodes)}"


def _remedy(job: SlurmJob) -> str:
    numbered = [step.step for step in job.steps if step.step.isdigit()]
    return " or ".join(f"pardbg scan --job {job.spelled}{ending}" for ending in (*(f".{step}" for step in numbered[:1]), ""))
