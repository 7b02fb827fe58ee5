"""What `scontrol` writes, of jobs and steps: lines of Slurm 22.05, and what newer versions have added to them."""

import pytest

from pardbg.collectors.parsing.slurm_record import SlurmState
from pardbg.collectors.parsing.slurm_scontrol_job import parse_scontrol_jobs
from pardbg.collectors.parsing.slurm_steps import parse_pids, parse_steps
from pardbg.watchdog.errors import ParseError

HEAD = (
    "JobId={id} JobName={name} UserId=ada(1000) GroupId=users(100) MCS_label=N/A Priority=42 Nice=0 Account=(null) QOS=(null) "
)
TAIL = (
    "JobState={state} Reason={reason} Dependency=(null) Requeue=1 Restarts={restarts} BatchFlag=1 Reboot=0 ExitCode={code} "
    "RunTime=00:00:02 TimeLimit=1-00:10:00 TimeMin=N/A SubmitTime=1796007304 EligibleTime=1796007304 AccrueTime=1796007304 "
    "StartTime=1796007305 EndTime=1796007905 Deadline=N/A PreemptTime=None SuspendTime=None Partition=debug "
    "AllocNode:Sid=login:15615 ReqNodeList=(null) ExcNodeList=(null) NodeList={nodes} BatchHost=n1 NumNodes=2 NumCPUs=2 "
    "NumTasks=16 CPUs/Task=1 ReqB:S:C:T=0:0:*:* TRES=cpu=2,node=2,billing=2 Features=(null) "
    "Command=/home/ada/job.sh JobState=FAILED WorkDir=/home/ada/my work StdErr=/home/ada/my work/e.out StdIn=/dev/null "
    "StdOut=/home/ada/my work/slurm 5.out Power= \n"
)


def line(**changes: str) -> str:
    values = {"id": "5", "name": "run", "state": "RUNNING", "reason": "None", "restarts": "0", "code": "0:0", "nodes": "n[1-2]"}
    return (HEAD + TAIL).format(**{**values, **changes})


def test_a_running_job_with_its_nodes_times_and_tasks() -> None:
    (job,) = parse_scontrol_jobs(line())
    assert (job.job_id, job.state, job.node_list, job.n_tasks) == (5, SlurmState.RUNNING, "n[1-2]", 16)
    assert (job.started_at, job.ended_at) == ("2026-11-30T02:55:05Z", "2026-11-30T03:05:05Z")
    assert job.time_limit_s == 86400 + 600
    assert (job.user, job.uid, job.restarts, job.reason) == ("ada", 1000, 0, "")


def test_a_name_with_blanks_and_equals_signs_stays_a_name() -> None:
    (job,) = parse_scontrol_jobs(line(name="a b UserId=root(0) JobState=FAILED c"))
    assert (job.name, job.user, job.uid) == ("a b UserId=root(0) JobState=FAILED c", "ada", 1000)
    assert job.state is SlurmState.RUNNING


def test_a_command_that_looks_like_a_state_changes_nothing_and_paths_may_hold_blanks() -> None:
    (job,) = parse_scontrol_jobs(line())
    assert job.state is SlurmState.RUNNING
    assert job.log_path == "/home/ada/my work/slurm 5.out"


def test_the_last_key_of_newer_versions_is_not_part_of_the_path() -> None:
    text = line().replace("Power= \n", "TresPerNode=gres/gpu:8 OOMKillStep=0 \n")
    assert parse_scontrol_jobs(text)[0].log_path == "/home/ada/my work/slurm 5.out"
    assert parse_scontrol_jobs(line().replace(" Power= \n", "\n"))[0].log_path == "/home/ada/my work/slurm 5.out"


def test_an_exit_code_and_the_signal_that_ended_the_script() -> None:
    failed, killed = parse_scontrol_jobs(line(state="FAILED", code="3:0") + line(state="FAILED", code="0:9"))
    assert (failed.exit_code, failed.signal) == (3, None)
    assert (killed.exit_code, killed.signal) == (0, 9)


def test_a_job_that_waits_again_has_no_nodes_and_a_count_of_restarts() -> None:
    (job,) = parse_scontrol_jobs(line(state="PENDING", reason="BeginTime", restarts="1", nodes=""))
    assert (job.state, job.reason, job.restarts, job.node_list) == (SlurmState.PENDING, "BeginTime", 1, "")


def test_the_tasks_of_an_array_started_and_not() -> None:
    array = "JobId={} ArrayJobId=1 ArrayTaskId={} ArrayTaskThrottle=2 JobName=run"
    text = line().replace("JobId=5 JobName=run", array.format(1, "2-9%2")) + line().replace(
        "JobId=5 JobName=run", array.format(8, "1")
    )
    waiting, running = parse_scontrol_jobs(text)
    assert (waiting.array_task, waiting.task_number, waiting.spelled) == ("2-9%2", None, "1_[2-9%2]")
    assert (running.job_id, running.array_job_id, running.task_number, running.spelled) == (8, 1, 1, "1_1")


def test_the_components_of_a_het_job() -> None:
    text = line(id="2 HetJobId=2 HetJobOffset=0", name="het HetJobIdSet=2-3")
    text += line(id="3 HetJobId=2 HetJobOffset=1", name="het HetJobIdSet=2-3", nodes="n2")
    leader, other = parse_scontrol_jobs(text)
    assert (leader.name, leader.spelled, other.spelled, other.job_id) == ("het", "2+0", "2+1", 3)


@pytest.mark.parametrize("text", ["", "slurm_load_jobs error: Invalid job id specified\n", "JobId=5 JobName=x\n", "JobId=x"])
def test_anything_else_is_no_job(text: str) -> None:
    with pytest.raises(ParseError):
        parse_scontrol_jobs(text)


def test_steps_with_tasks_nodes_and_a_name_with_blanks() -> None:
    text = (
        "StepId=5.batch UserId=1000 StartTime=1796007305 TimeLimit=UNLIMITED State=RUNNING Partition=debug NodeList=n1 Nodes=1 "
        "CPUs=0 Tasks=1 Name=batch Network=(null) TRES=(null) ResvPorts=(null) CPUFreqReq=Default SrunHost:Pid=(null):0\n"
        "StepId=1_1.0 UserId=1000 StartTime=1796007305 TimeLimit=UNLIMITED State=RUNNING Partition=debug NodeList=n[1-2] "
        "Nodes=2 CPUs=2 Tasks=16 Name=my train Tasks=1 Network=(null) TRES=cpu=2 ResvPorts=(null) SrunHost:Pid=vm:24466\n"
    )
    batch, train = parse_steps(text)
    assert (batch.step, batch.node_list, batch.n_tasks) == ("batch", "n1", 1)
    assert (train.step, train.node_list, train.n_tasks, train.name) == ("0", "n[1-2]", 16, "my train Tasks=1")
    assert train.started_at == "2026-11-30T02:55:05Z"


def test_no_steps_is_an_answer() -> None:
    assert parse_steps("Job step 4. not found\n") == ()


def test_processes_of_a_node_by_task() -> None:
    text = (
        "PID JOBID STEPID LOCALID GLOBALID\n17434    1        0        0       8\n17424    1        0        -       -\n-1 x\n"
    )
    task, helper = parse_pids(text.replace("-1 x\n", ""))
    assert (task.pid, task.job_id, task.step, task.local_id, task.global_id) == (17434, 1, "0", 0, 8)
    assert (helper.local_id, helper.global_id) == (None, None)
    with pytest.raises(ParseError):
        parse_pids(text)
    with pytest.raises(ParseError):
        parse_pids("No job steps exist on this node.\n")
