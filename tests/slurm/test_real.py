"""Against a real Slurm: jobs that run, wait, were cancelled, preempted, timed out, and that lost a node."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.slurm.cluster import NOBODY, Cluster, running_cluster, why_not

from pardbg.collectors.jobs.slurm.ending import EndKind, ending_of
from pardbg.collectors.jobs.slurm.find import find_slurm_job
from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.collectors.jobs.slurm.node_tasks import find_node_tasks
from pardbg.collectors.parsing.slurm_notices import NoticeKind, parse_notices
from pardbg.collectors.parsing.slurm_record import SlurmState
from pardbg.watchdog.errors import AmbiguousJobError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason

pytestmark = [pytest.mark.live, pytest.mark.skipif(bool(why_not()), reason=why_not())]

ASK_S = 20.0
ANSWER_S = 3.0  # 0.05 s on an idle machine
TRAIN = "srun --mpi=none sleep 600"
BOTH_NODES = ("--nodes=2", "--ntasks=2", "--mem=10")
FIND = """
import sys, time, msgspec
from pardbg.collectors.jobs.slurm.find import find_slurm_job
print(msgspec.json.encode(find_slurm_job(sys.argv[1], time.monotonic() + 20)).decode())
"""


@pytest.fixture(autouse=True)
def _at_the_cluster(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
    yield
    cluster.cancel_all()
    cluster.wait_until_idle()


def found(query: str) -> SlurmJob:
    started_s = time.monotonic()
    job = find_slurm_job(query, started_s + ASK_S)
    assert isinstance(job, SlurmJob), job
    assert time.monotonic() - started_s < ANSWER_S
    return job


def missing(query: str, within_s: float = ASK_S) -> Absence:
    absence = find_slurm_job(query, time.monotonic() + within_s)
    assert isinstance(absence, Absence), absence
    return absence


def submitted(cluster: Cluster, *options: str, script: str = TRAIN, state: str = "RUNNING") -> str:
    job = cluster.submit(script, *options, as_uid=NOBODY)
    cluster.wait_for(job, state)
    return job


def wait_for_step(job: str) -> None:
    until_s = time.monotonic() + ASK_S
    while "0" not in {step.step for step in found(job).steps}:
        assert time.monotonic() < until_s
        time.sleep(0.05)


def test_its_owner_finds_a_job_on_two_nodes(cluster: Cluster) -> None:
    job = submitted(cluster, *BOTH_NODES, "--job-name=two words", "--time=10")
    wait_for_step(job)
    seen = msgspec.json.decode(cluster.run(sys.executable, "-c", FIND, job, as_uid=NOBODY), type=SlurmJob)
    assert (seen.state, seen.nodes, seen.n_tasks, seen.name) == (SlurmState.RUNNING, ("n1", "n2"), 2, "two words")
    assert (seen.user, seen.uid, seen.restarts, seen.time_limit_s) == ("nobody", NOBODY, 0, 600)
    assert (seen.lost_nodes, seen.silent_nodes, seen.unknowns, len(seen.told_by)) == ((), (), (), 3)
    assert {(step.step, step.nodes) for step in seen.steps} == {("batch", ("n1",)), ("0", ("n1", "n2"))}
    assert Path(seen.log_path) == cluster.work / f"slurm-{job}.out"
    assert ending_of(seen) is None


def test_processes_of_a_node_by_task_even_without_the_controller(cluster: Cluster) -> None:
    job = submitted(cluster, *BOTH_NODES, script="srun --mpi=none sh -c 'echo runs; exec sleep 600'")
    until_s = time.monotonic() + ASK_S
    log = cluster.work / f"slurm-{job}.out"
    while not log.exists() or log.read_text().count("runs") < 2:
        assert time.monotonic() < until_s
        time.sleep(0.05)
    os.kill(cluster.pid_of("slurmctld"), signal.SIGSTOP)
    try:
        tasks = find_node_tasks(int(job), "n2", time.monotonic() + ASK_S)
        nobody = find_node_tasks(999999, "n2", time.monotonic() + ASK_S)
    finally:
        os.kill(cluster.pid_of("slurmctld"), signal.SIGCONT)
    assert isinstance(tasks, tuple), tasks
    assert [(task.step, task.local_id, task.global_id) for task in tasks] == [("0", 0, 1)]
    assert Path(f"/proc/{tasks[0].pid}/comm").read_text() in {"sleep\n", "sh\n"}
    assert isinstance(nobody, Absence)
    assert nobody.reason is AbsenceReason.EMPTY


def test_tasks_of_an_array(cluster: Cluster) -> None:
    array = submitted(cluster, "--array=3-9%2", "--mem=10", state="PENDING")
    cluster.wait_for(f"{array}_3", "RUNNING")
    cluster.wait_for(f"{array}_4", "RUNNING")
    task, waiting = found(f"{array}_4"), found(f"{array}_7")
    assert (task.array_task_id, task.state, len(task.nodes)) == (4, SlurmState.RUNNING, 1)
    assert found(str(task.job_id)).spelled == f"{array}_4"
    assert (waiting.spelled, waiting.state, waiting.nodes) == (f"{array}_7", SlurmState.PENDING, ())
    with pytest.raises(AmbiguousJobError) as caught:
        found(array)
    assert caught.value.choices == (f"pardbg scan --job slurm:{array}_3", f"pardbg scan --job slurm:{array}_4")


def test_a_het_job_and_its_components(cluster: Cluster) -> None:
    parts = ("--nodes=1", "--mem=10", "--exclusive")
    job = cluster.run("sbatch", "--parsable", *parts, ":", *parts, "--wrap", TRAIN, as_uid=NOBODY).strip()
    cluster.wait_for(job, "RUNNING")
    whole, second = found(job), found(f"{job}+1")
    assert (whole.spelled, sorted(whole.nodes), whole.het_groups) == (job, ["n1", "n2"], (0, 1))
    assert (second.nodes, second.srun_job_id, second.unknowns) == (whole.parts[1].nodes, int(job), ())


def test_a_job_that_waits_says_for_what(cluster: Cluster) -> None:
    name = "a b UserId=root(0) c"
    job = submitted(
        cluster, *BOTH_NODES, "--begin=now+1hour", f"--job-name={name}", "--comment=x JobState=FAILED", state="PENDING"
    )
    cluster.wait_for(job, "BeginTime", field="%r")
    seen = found(job)
    assert (seen.state, seen.reason, seen.name, seen.uid, seen.nodes) == (SlurmState.PENDING, "BeginTime", name, NOBODY, ())
    assert (seen.started_at, len(seen.told_by)) == (None, 1)


def test_after_scancel(cluster: Cluster) -> None:
    job = submitted(cluster, *BOTH_NODES)
    wait_for_step(job)
    cluster.run("scancel", job, as_uid=NOBODY)
    cluster.wait_for(job, "CANCELLED")
    seen = found(job)
    ending = ending_of(seen)
    assert (seen.state, seen.nodes, seen.signal) == (SlurmState.CANCELLED, ("n1", "n2"), signal.SIGTERM)
    assert [unknown.reason for unknown in seen.unknowns] == [AbsenceReason.SWITCHED_OFF]
    assert ending is not None
    assert "cancelled (by whom only accounting knows)" in ending.claim
    kinds = {notice.kind for notice in parse_notices(Path(seen.log_path).read_text()) if notice.is_whole_job}
    assert kinds == {NoticeKind.CANCELLED}


def test_after_an_exit_code_a_signal_and_success(cluster: Cluster) -> None:
    failed = submitted(cluster, "--mem=10", script="exit 3", state="FAILED")
    killed = submitted(cluster, "--mem=10", script="kill -9 $$", state="FAILED")
    done = submitted(cluster, "--mem=10", script="true", state="COMPLETED")
    assert (found(failed).exit_code, found(failed).signal) == (3, None)
    assert (found(killed).exit_code, found(killed).signal) == (0, 9)
    assert found(done).state is SlurmState.COMPLETED


def test_after_preemption(cluster: Cluster) -> None:
    job = submitted(cluster, *BOTH_NODES, "--exclusive")
    cluster.submit(TRAIN, *BOTH_NODES, "--exclusive", "--partition=urgent")
    cluster.wait_for(job, "PREEMPTED")
    ending = ending_of(found(job))
    assert ending is not None
    assert (ending.kind, ending.is_by_slurm) == (EndKind.PREEMPTED, True)
    assert "room for another job" in ending.claim


def test_an_unknown_id_is_gone_with_a_remedy() -> None:
    absence = missing("999999")
    assert absence.reason is AbsenceReason.GONE
    assert "accounting is off" in absence.detail


def test_a_controller_that_hangs_costs_the_deadline_and_no_more(cluster: Cluster) -> None:
    job = submitted(cluster, *BOTH_NODES)
    os.kill(cluster.pid_of("slurmctld"), signal.SIGSTOP)
    try:
        started_s = time.monotonic()
        assert missing(job, within_s=1.5).reason is AbsenceReason.TIMED_OUT
        assert time.monotonic() - started_s < ANSWER_S
    finally:
        os.kill(cluster.pid_of("slurmctld"), signal.SIGCONT)
    assert found(job).state is SlurmState.RUNNING


def test_nothing_of_a_cluster_stays_behind_when_a_test_fails() -> None:
    seen: list[Cluster] = []
    with pytest.raises(RuntimeError, match="a test failed"):
        _fail_in_a_cluster(seen)
    assert seen[0].processes() == set()
    assert not seen[0].folder.exists()


def _fail_in_a_cluster(seen: list[Cluster]) -> None:
    with running_cluster() as own:
        seen.append(own)
        own.wait_for(own.submit(TRAIN, *BOTH_NODES, as_uid=NOBODY), "RUNNING")
        assert len(own.processes()) >= 4
        raise RuntimeError("a test failed")
