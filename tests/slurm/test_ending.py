"""In words: why a job has ended."""

import msgspec
import pytest

from pardbg.collectors.jobs.slurm.ending import EndKind, ending_of
from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.collectors.parsing.slurm_record import SlurmNode, SlurmRecord, SlurmState
from pardbg.watchdog.model.names import Cause

JOB = SlurmJob(
    spelled="5", job_id=5, user="ada", uid=1000, state=SlurmState.RUNNING, nodes=("n1", "n2"), ended_at="2026-11-30T03:00:00Z"
)
AT = " at 2026-11-30T03:00:00Z"


def job(state: SlurmState, **values: object) -> SlurmJob:
    return msgspec.structs.replace(JOB, state=state, **values)


@pytest.mark.parametrize(
    "state", [SlurmState.RUNNING, SlurmState.PENDING, SlurmState.SUSPENDED, SlurmState.COMPLETING, SlurmState.UNKNOWN]
)
def test_a_job_that_is_not_over_has_no_ending(state: SlurmState) -> None:
    assert ending_of(job(state, restarts=0)) is None


@pytest.mark.parametrize(
    ("ended", "kind", "cause", "claim"),
    [
        (
            job(SlurmState.PREEMPTED),
            EndKind.PREEMPTED,
            Cause.PREEMPTED,
            "Slurm job 5 was preempted: Slurm ended it to make room for another job" + AT,
        ),
        (
            job(SlurmState.TIMEOUT, time_limit_s=5400),
            EndKind.TIME_LIMIT,
            None,
            "Slurm job 5 reached its time limit of 1 h 30 min" + AT,
        ),
        (
            job(SlurmState.CANCELLED, cancelled_by=1000),
            EndKind.CANCELLED,
            None,
            "Slurm job 5 was cancelled by its owner ada" + AT,
        ),
        (job(SlurmState.CANCELLED, cancelled_by=0), EndKind.CANCELLED, None, "Slurm job 5 was cancelled by root" + AT),
        (job(SlurmState.CANCELLED, cancelled_by=1001), EndKind.CANCELLED, None, "Slurm job 5 was cancelled by user 1001" + AT),
        (job(SlurmState.CANCELLED), EndKind.CANCELLED, None, "Slurm job 5 was cancelled (by whom only accounting knows)" + AT),
        (job(SlurmState.OUT_OF_MEMORY), EndKind.OUT_OF_MEMORY, Cause.OOM_KILLED, "Slurm job 5 ran out of memory" + AT),
        (job(SlurmState.FAILED, exit_code=3), EndKind.FAILED, Cause.EXITED, "Slurm job 5 failed with exit code 3" + AT),
        (job(SlurmState.FAILED, exit_code=0, signal=9), EndKind.FAILED, Cause.SIGNAL, "Slurm job 5 failed with signal 9" + AT),
        (job(SlurmState.COMPLETED), EndKind.COMPLETED, None, "Slurm job 5 has completed" + AT),
    ],
)
def test_each_end_in_one_sentence(ended: SlurmJob, kind: EndKind, cause: Cause | None, claim: str) -> None:
    ending = ending_of(ended)
    assert ending is not None
    assert (ending.kind, ending.cause, ending.claim) == (kind, cause, claim)


def test_a_failed_node_is_named_with_what_slurm_says_of_it() -> None:
    down = SlurmNode(name="n2", raw_state="down*", is_down=True, reason="Not responding")
    ending = ending_of(job(SlurmState.NODE_FAIL, lost_nodes=("n2",), ill_nodes=(down,)))
    assert ending is not None
    assert ending.claim == f"Slurm job 5 was ended by Slurm because a node failed: n2 (Not responding){AT}"
    assert (ending.cause, ending.nodes, ending.is_by_slurm) == (Cause.NODE_LOST, ("n2",), True)
    assert "sbatch --exclude=n2" in ending.advice[0]


def test_a_failed_node_that_is_well_again_is_not_guessed() -> None:
    ending = ending_of(job(SlurmState.NODE_FAIL))
    assert ending is not None
    assert "it does not say which of n[1-2]" in ending.claim
    assert ending.nodes == ()


def test_a_job_that_waits_again_says_how_its_last_run_ended() -> None:
    run = SlurmRecord(job_id=5, state=SlurmState.NODE_FAIL, ended_at="2026-11-30T02:00:00Z")
    ending = ending_of(job(SlurmState.PENDING, restarts=2, previous_run=run, lost_nodes=("n2",)))
    assert ending is not None
    assert "because a node failed (n2) and waits in the queue again (put back 2 times)" in ending.claim
    assert (ending.kind, ending.at) == (EndKind.NODE_FAILURE, "2026-11-30T02:00:00Z")
    (advice,) = ending.advice
    assert "ExcNodeList=n2" in advice
    assert "requeue" not in advice


def test_without_accounting_it_says_where_to_look() -> None:
    ending = ending_of(job(SlurmState.PENDING, restarts=1))
    assert ending is not None
    assert (ending.kind, ending.cause) == (EndKind.REQUEUED, None)
    assert "put back once" in ending.claim
    assert "end of the job's output" in ending.claim


def test_only_failure_completion_and_memory_may_be_a_ranks_doing() -> None:
    ends = [ending_of(job(state)) for state in SlurmState if state.is_over]
    ranks = {end.kind for end in ends if end is not None and not end.is_by_slurm}
    assert ranks == {EndKind.FAILED, EndKind.COMPLETED, EndKind.OUT_OF_MEMORY}
