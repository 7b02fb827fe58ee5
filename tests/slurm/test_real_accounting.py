"""Against a real Slurm with accounting: jobs that the controller has forgotten or requeued, as `sacct` remembers them."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tests.slurm.accounting import why_no_accounting
from tests.slurm.cluster import NOBODY, Cluster, running_cluster, why_not

from pardbg.collectors.jobs.slurm.ending import EndKind, ending_of
from pardbg.collectors.jobs.slurm.find import find_slurm_job
from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.collectors.parsing.slurm_record import SlurmState
from pardbg.watchdog.errors import AmbiguousJobError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason

pytestmark = [
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not() or why_no_accounting()), reason=why_not() or why_no_accounting()),
]

TRAIN = "srun --mpi=none sleep 600"
BOTH_NODES = ("--nodes=2", "--ntasks=2", "--mem=10")
WRITTEN_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Forgotten:
    """Ids of jobs the controller does not know any more, and what it said of one while it still waited again."""

    by_owner: str
    by_root: str
    failed: str
    array: str
    het: str
    requeued: SlurmJob


def found(query: str) -> SlurmJob:
    job = find_slurm_job(query, time.monotonic() + 20)
    assert isinstance(job, SlurmJob), job
    return job


@pytest.fixture(scope="module")
def forgotten() -> Iterator[Forgotten]:
    with pytest.MonkeyPatch.context() as patch, running_cluster(with_accounting=True) as cluster:
        patch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
        yield _run_and_forget(cluster)


def _run_and_forget(cluster: Cluster) -> Forgotten:
    def submit(script: str, *options: str, state: str) -> str:
        job = cluster.submit(script, *options, as_uid=NOBODY)
        cluster.wait_for(job, state)
        return job

    by_owner, by_root = submit(TRAIN, *BOTH_NODES, state="RUNNING"), submit(TRAIN, *BOTH_NODES, state="RUNNING")
    requeued = submit(TRAIN, *BOTH_NODES, state="RUNNING")
    cluster.run("scancel", by_owner, as_uid=NOBODY)
    cluster.run("scancel", by_root)
    cluster.run("scontrol", "requeuehold", requeued)  # a mere requeue runs it anew at once
    failed = submit("exit 3", "--mem=10", state="FAILED")
    array = submit("true", "--array=0-2", "--mem=10", state="COMPLETED")
    parts = ("--nodes=1", "--mem=10", "--exclusive")
    het = cluster.run("sbatch", "--parsable", *parts, ":", *parts, "--wrap", "true", as_uid=NOBODY).strip()
    cluster.wait_for(het, "COMPLETED")
    waits_again = _wait_for_previous_run(requeued)
    cluster.cancel_all()
    _wait_until_written(cluster, [by_owner, by_root, failed, *(f"{array}_{task}" for task in range(3)), f"{het}+0", f"{het}+1"])
    cluster.forget_jobs()
    return Forgotten(by_owner=by_owner, by_root=by_root, failed=failed, array=array, het=het, requeued=waits_again)


def _wait_for_previous_run(query: str) -> SlurmJob:
    until_s = time.monotonic() + WRITTEN_S
    while (job := found(query)).previous_run is None:
        assert time.monotonic() < until_s, job
        time.sleep(0.1)
    return job


def _wait_until_written(cluster: Cluster, jobs: list[str]) -> None:
    """The controller hands its records to the database daemon in the background, an array's task when it ends."""
    until_s = time.monotonic() + WRITTEN_S
    while True:
        lines = cluster.run("sacct", "--allusers", "-XPn", "--format=JobID,End").splitlines()
        ended = {line.partition("|")[0] for line in lines if not line.endswith("|Unknown")}
        if ended.issuperset(jobs):
            return
        assert time.monotonic() < until_s, lines
        time.sleep(0.1)


def test_who_cancelled_a_forgotten_job(forgotten: Forgotten) -> None:
    by_owner, by_root = found(forgotten.by_owner), found(forgotten.by_root)
    assert (by_owner.state, by_owner.cancelled_by, by_owner.uid) == (SlurmState.CANCELLED, NOBODY, NOBODY)
    assert (by_owner.nodes, by_owner.unknowns, by_owner.told_by[0].split()[0]) == (("n1", "n2"), (), "sacct")
    claims = [ending.claim for ending in (ending_of(by_owner), ending_of(by_root)) if ending is not None]
    assert "was cancelled by its owner nobody at 20" in claims[0]
    assert "was cancelled by root at 20" in claims[1]


def test_how_a_forgotten_job_failed(forgotten: Forgotten) -> None:
    job = found(forgotten.failed)
    assert (job.state, job.exit_code, job.signal) == (SlurmState.FAILED, 3, None)
    assert job.ended_at is not None
    assert (job.restarts, job.lost_nodes) == (0, ())


def test_tasks_of_a_forgotten_array(forgotten: Forgotten) -> None:
    assert (found(f"{forgotten.array}_1").state, found(f"{forgotten.array}_1").array_task_id) == (SlurmState.COMPLETED, 1)
    with pytest.raises(AmbiguousJobError) as caught:
        found(forgotten.array)
    assert len(caught.value.choices) == 3


def test_components_of_a_forgotten_het_job(forgotten: Forgotten) -> None:
    whole, second = found(forgotten.het), found(f"{forgotten.het}+1")
    assert (sorted(whole.nodes), whole.het_groups, whole.state) == (["n1", "n2"], (0, 1), SlurmState.COMPLETED)
    assert second.nodes == whole.parts[1].nodes


def test_a_job_put_back_by_hand_says_when_its_run_ended(forgotten: Forgotten) -> None:
    job = forgotten.requeued
    assert (job.state, job.restarts, job.nodes) == (SlurmState.PENDING, 1, ())
    assert job.previous_run is not None
    assert job.previous_run.raw_state == "REQUEUED"
    ending = ending_of(job)
    assert ending is not None
    assert (ending.kind, ending.at) == (EndKind.REQUEUED, job.previous_run.ended_at)


def test_an_id_that_never_was(forgotten: Forgotten) -> None:
    assert forgotten.array
    absence = find_slurm_job("999999", time.monotonic() + 20)
    assert isinstance(absence, Absence)
    assert absence.reason is AbsenceReason.GONE
    assert "accounting has none either" in absence.detail
