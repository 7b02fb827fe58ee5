"""Against a real Slurm whose node n2 loses its daemon while jobs run: silent first, then down; and a job at its time limit.

All of it happens once, in a cluster of its own, and takes as long as Slurm takes to notice: about half a minute.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.slurm.cluster import NOBODY, Cluster, running_cluster, why_not

from pardbg.collectors.jobs.slurm.ending import EndKind, SlurmEnding, ending_of
from pardbg.collectors.jobs.slurm.find import find_slurm_job
from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.collectors.parsing.slurm_notices import NoticeKind, parse_notices
from pardbg.collectors.parsing.slurm_record import SlurmState
from pardbg.watchdog.model.names import Cause
from pardbg.watchdog.scan.slurm_notices import complete

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not())]

NODE_TIMEOUT_S = 10  # then n2 is silent for some 11 s before it is down: long enough to be seen so
NOTICED_S = 90.0
BOTH_NODES = ("--nodes=2", "--ntasks=2", "--mem=10")


@dataclass(frozen=True, kw_only=True)
class Losses:
    """What Slurm said of the jobs, at the moments that matter."""

    silent: SlurmJob
    ended: SlurmJob
    shrunk: SlurmJob
    requeued: SlurmJob
    at_limit: SlurmJob


def found(query: str) -> SlurmJob:
    job = find_slurm_job(query, time.monotonic() + 20)
    assert isinstance(job, SlurmJob), job
    return job


def until(query: str, attribute: str, value: object) -> SlurmJob:
    until_s = time.monotonic() + NOTICED_S
    while getattr(job := found(query), attribute) != value:
        assert time.monotonic() < until_s, f"{job.spelled} is {job.raw_state} on {job.nodes}: {job.ill_nodes}"
        time.sleep(0.2)
    return job


def words_of(job: SlurmJob) -> SlurmEnding:
    ending = ending_of(job)
    assert ending is not None
    return ending


@pytest.fixture(scope="module")
def losses() -> Iterator[Losses]:
    with pytest.MonkeyPatch.context() as patch, running_cluster(node_timeout_s=NODE_TIMEOUT_S) as cluster:
        patch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
        yield _lose_a_node(cluster)


def _lose_a_node(cluster: Cluster) -> Losses:
    def submit(*options: str, script: str = "srun --mpi=none sleep 600") -> str:
        job = cluster.submit(script, "--mem=10", *options, as_uid=NOBODY)
        cluster.wait_for(job, "RUNNING")
        return job

    limited = submit("--nodelist=n1", "--time=1", script="sleep 600")
    cluster.run("scontrol", "update", f"JobId={limited}", "EndTime=now+1")
    ended, requeued = submit(*BOTH_NODES, "--no-requeue"), submit(*BOTH_NODES)
    shrunk = submit(*BOTH_NODES, "--no-kill", "--no-requeue", script="srun --mpi=none --no-kill sleep 600; sleep 600")
    until(shrunk, "n_tasks", 2)
    time.sleep(1)  # the steps of all jobs are there
    cluster.kill("n2")
    return Losses(
        silent=until(ended, "silent_nodes", ("n2",)),
        ended=until(ended, "state", SlurmState.NODE_FAIL),
        shrunk=until(shrunk, "nodes", ("n1",)),
        requeued=until(requeued, "restarts", 1),
        at_limit=until(limited, "state", SlurmState.TIMEOUT),
    )


def test_a_node_that_does_not_answer_is_left_out_before_it_is_down(losses: Losses) -> None:
    assert (losses.silent.state, losses.silent.nodes) == (SlurmState.RUNNING, ("n1", "n2"))
    assert (losses.silent.reachable_nodes, losses.silent.lost_nodes) == (("n1",), ())


def test_a_job_that_a_failed_node_has_ended_names_it(losses: Losses) -> None:
    ending = words_of(losses.ended)
    assert (ending.kind, ending.cause, ending.nodes) == (EndKind.NODE_FAILURE, Cause.NODE_LOST, ("n2",))
    assert "because a node failed: n2 (Not responding)" in ending.claim


def test_a_job_that_goes_on_without_the_node_has_lost_it(losses: Losses) -> None:
    assert (losses.shrunk.state, losses.shrunk.lost_nodes) == (SlurmState.RUNNING, ("n2",))
    assert losses.shrunk.reachable_nodes == ("n1",)


def test_a_requeued_job_waits_without_nodes_and_its_output_says_why(losses: Losses) -> None:
    assert (losses.requeued.state, losses.requeued.nodes) == (SlurmState.PENDING, ())
    assert words_of(losses.requeued).kind is EndKind.REQUEUED
    notices = parse_notices(Path(losses.requeued.log_path).read_text())
    assert NoticeKind.NODE_FAILURE in {notice.kind for notice in notices if notice.is_whole_job}
    assert "n2" in {notice.node for notice in notices if not notice.job_id}
    heard = words_of(complete(losses.requeued, notices))
    assert (heard.kind, heard.cause, heard.nodes) == (EndKind.NODE_FAILURE, Cause.NODE_LOST, ("n2",))


def test_a_job_at_its_time_limit(losses: Losses) -> None:
    ending = words_of(losses.at_limit)
    assert (ending.kind, ending.is_by_slurm) == (EndKind.TIME_LIMIT, True)
    assert "reached its time limit" in ending.claim
