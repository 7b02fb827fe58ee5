"""Why a job has ended, in words for a verdict: what Slurm did to it comes before anything about ranks. Pure."""

from enum import Enum

from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.collectors.parsing.slurm_record import SlurmState
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.host_names import fold_hosts
from pardbg.watchdog.model.names import Cause


class EndKind(str, Enum):
    """How a run of a job ended."""

    PREEMPTED = "preempted"
    TIME_LIMIT = "time-limit"
    CANCELLED = "cancelled"
    NODE_FAILURE = "node-failure"
    OUT_OF_MEMORY = "out-of-memory"
    BOOT_FAILURE = "boot-failure"
    REQUEUED = "requeued"
    FAILED = "failed"
    COMPLETED = "completed"


class SlurmEnding(Noun, frozen=True, kw_only=True):
    """Why, in one sentence.

    Attributes:
        cause: the contract's word for a dead rank, where it has one.
        is_by_slurm: whether Slurm or a person ended it, so that no rank is to blame for the end.
        claim: a sentence for the report.
        advice: what to try.
        at: RFC 3339, None if not said.
        nodes: the failed ones, where known.
    """

    kind: EndKind
    cause: Cause | None = None
    is_by_slurm: bool
    claim: str
    advice: tuple[str, ...] = ()
    at: str | None = None
    nodes: tuple[str, ...] = ()


def ending_of(job: SlurmJob) -> SlurmEnding | None:
    """Why the job (or the run before its last restart, if it waits in the queue again) has ended; None if it has not."""
    if job.state is SlurmState.PENDING and job.restarts:
        return _requeued(job, job.restarts)
    if not job.state.is_over:
        return None
    kind, cause, words = _WORDS[job.state]
    when = f" at {job.ended_at}" if job.ended_at else ""
    return SlurmEnding(
        kind=kind,
        cause=_cause_of_failure(job) if job.state is SlurmState.FAILED else cause,
        is_by_slurm=kind not in {EndKind.FAILED, EndKind.COMPLETED, EndKind.OUT_OF_MEMORY},
        claim=f"Slurm job {job.spelled} {words}{_detail(job)}{when}",
        advice=_advise(kind, job),
        at=job.ended_at,
        nodes=job.lost_nodes,
    )


_WORDS: dict[SlurmState, tuple[EndKind, Cause | None, str]] = {
    SlurmState.PREEMPTED: (EndKind.PREEMPTED, Cause.PREEMPTED, "was preempted: Slurm ended it to make room for another job"),
    SlurmState.TIMEOUT: (EndKind.TIME_LIMIT, None, "reached its time limit"),
    SlurmState.DEADLINE: (EndKind.TIME_LIMIT, None, "reached its deadline"),
    SlurmState.CANCELLED: (EndKind.CANCELLED, None, "was cancelled"),
    SlurmState.NODE_FAIL: (EndKind.NODE_FAILURE, Cause.NODE_LOST, "was ended by Slurm because a node failed"),
    SlurmState.OUT_OF_MEMORY: (EndKind.OUT_OF_MEMORY, Cause.OOM_KILLED, "ran out of memory"),
    SlurmState.BOOT_FAIL: (EndKind.BOOT_FAILURE, Cause.NODE_LOST, "never started: its nodes did not boot"),
    SlurmState.FAILED: (EndKind.FAILED, Cause.EXITED, "failed"),
    SlurmState.COMPLETED: (EndKind.COMPLETED, None, "has completed"),
}
_SAVE = "checkpoint on the signal that comes before (sbatch --signal=B:USR1@120)"
_ADVICE = {
    EndKind.TIME_LIMIT: ("was it hung? pardbg scan while it runs tells; else raise --time, or checkpoint and --requeue",),
    EndKind.OUT_OF_MEMORY: ("raise --mem; the kernel log of the node says which process was killed",),
    EndKind.BOOT_FAILURE: ("submit again; tell the administrators which nodes did not come up",),
}


def _advise(kind: EndKind, job: SlurmJob) -> tuple[str, ...]:
    """What to try; a job that waits in the queue again needs no --requeue."""
    is_queued = job.state is SlurmState.PENDING
    if kind is EndKind.PREEMPTED:
        return (_SAVE,) if is_queued else (f"{_SAVE}, submit with --requeue",)
    if kind is not EndKind.NODE_FAILURE:
        return _ADVICE.get(kind, ())
    names = fold_hosts(job.lost_nodes) or "NODE"
    if is_queued:
        return (f"keep it off the node (scontrol update JobId={job.job_id} ExcNodeList={names}), and report the node",)
    return (f"exclude the node (sbatch --exclude={names}) and report it; --requeue starts a job anew elsewhere",)


def _requeued(job: SlurmJob, restarts: int) -> SlurmEnding:
    """Nodes and times of the run are gone from the controller: accounting, else a node that is down, else nothing says why."""
    run = job.previous_run
    times = "once" if restarts == 1 else f"{restarts} times"
    known = _WORDS.get(run.state) if run is not None else None
    kind, cause, words = known or (EndKind.REQUEUED, None, "was ended by Slurm or a person")
    unsaid = "" if known else "; a failed node, preemption or scontrol requeue: the end of the job's output says which"
    lost = f" ({fold_hosts(job.lost_nodes)})" if job.lost_nodes else ""
    return SlurmEnding(
        kind=kind,
        cause=cause,
        is_by_slurm=True,
        claim=f"Slurm job {job.spelled} {words}{lost} and waits in the queue again (put back {times}){unsaid}",
        advice=_advise(kind, job),
        at=run.ended_at if run is not None else None,
        nodes=job.lost_nodes,
    )


def _detail(job: SlurmJob) -> str:
    if job.state is SlurmState.NODE_FAIL:
        return f": {_failed_nodes(job)}"
    if job.state is SlurmState.CANCELLED:
        return f" {_canceller(job)}"
    if job.state is SlurmState.TIMEOUT and job.time_limit_s:
        return f" of {_duration(job.time_limit_s)}"
    if job.state is SlurmState.FAILED:
        return f" with {f'signal {job.signal}' if job.signal else f'exit code {job.exit_code}'}"
    return ""


def _failed_nodes(job: SlurmJob) -> str:
    if not job.lost_nodes:
        return f"it does not say which of {fold_hosts(job.nodes) or 'its nodes'}"
    reasons = {node.reason for node in job.ill_nodes if node.name in job.lost_nodes and node.reason}
    return fold_hosts(job.lost_nodes) + (f" ({', '.join(sorted(reasons))})" if reasons else "")


def _canceller(job: SlurmJob) -> str:
    if job.cancelled_by is None:
        return "(by whom only accounting knows)"
    if job.cancelled_by == job.uid:
        return f"by its owner {job.user}".rstrip()
    return "by root" if job.cancelled_by == 0 else f"by user {job.cancelled_by}"


def _cause_of_failure(job: SlurmJob) -> Cause:
    return Cause.SIGNAL if job.signal else Cause.EXITED


def _duration(seconds: int) -> str:
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours} h {minutes} min" if hours and minutes else f"{hours} h" if hours else f"{minutes} min"
