"""Commands that are missing, slow, endless, refused or silent: a value or a reason, in time, and no process stays."""

import time
from pathlib import Path

import pytest
from tests.own_children import are_soon_gone, living_children

from pardbg.collectors.jobs.own_command import Answer
from pardbg.collectors.jobs.slurm.asking import MOST_OUTPUT_BYTES, ask
from pardbg.collectors.jobs.slurm.find import find_slurm_job
from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.collectors.parsing.slurm_record import SlurmState
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason

JOB = (
    "JobId=5 JobName=run UserId=ada(1000) GroupId=users(100) MCS_label=N/A JobState={state} Reason=None Restarts={restarts} "
    "ExitCode=0:15 TimeLimit=UNLIMITED StartTime=1796007305 EndTime=1796007905 NodeList={nodes} NumTasks=2 StdOut=/x Power="
)
SACCT = "5\x1f5\x1fada\x1f1000\x1f{state}\x1f0:15\x1f1796007305\x1f1796007905\x1f60\x1f\x1f{nodes}\x1fNone\x1frun"
UNKNOWN = "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1"
DISABLED = "echo 'Slurm accounting storage is disabled' >&2; exit 1"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs, the only one in PATH besides the system's."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for name in ("scontrol", "squeue", "sinfo", "sacct"):
        plant(tmp_path, name, f"echo 'no {name} planted' >&2; exit 7")
    return tmp_path


def plant(folder: Path, name: str, script: str) -> None:
    """A program that also notes what it was asked."""
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "{name} $*" >> {folder}/asked\n{script}\n')
    path.chmod(0o755)


def say(text: str) -> str:
    return f"cat <<'END'\n{text}\nEND"


def asked(folder: Path) -> list[str]:
    return [line.split()[0] for line in (folder / "asked").read_text().splitlines()]


def soon(seconds: float = 10.0) -> float:
    return time.monotonic() + seconds


def reason_of(answer: object) -> AbsenceReason:
    assert isinstance(answer, Absence)
    return answer.reason


def found(query: str) -> SlurmJob:
    job = find_slurm_job(query, soon())
    assert isinstance(job, SlurmJob), job
    return job


def test_a_command_that_is_not_there(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (programs / "squeue").unlink()
    monkeypatch.setenv("PATH", str(programs))
    assert reason_of(ask(("squeue",), soon())) is AbsenceReason.NOT_INSTALLED


def test_a_command_that_never_ends_is_ended_at_the_deadline(programs: Path) -> None:
    before = living_children()
    plant(programs, "squeue", "trap '' TERM INT; while :; do sleep 0.2; done")
    started_s = time.monotonic()
    assert reason_of(ask(("squeue",), soon(0.5))) is AbsenceReason.TIMED_OUT
    assert time.monotonic() - started_s < 3
    assert are_soon_gone(before)


def test_a_command_that_closes_its_output_and_stays_is_ended_too(programs: Path) -> None:
    plant(programs, "squeue", "exec >&- 2>&-; while :; do sleep 0.2; done")
    assert reason_of(ask(("squeue",), soon(0.5))) is AbsenceReason.TIMED_OUT


def test_an_endless_answer_is_cut_off(programs: Path) -> None:
    plant(programs, "squeue", f"head -c {MOST_OUTPUT_BYTES + 1} /dev/zero")
    assert reason_of(ask(("squeue",), soon(30))) is AbsenceReason.UNREADABLE


def test_endless_errors_do_not_fill_the_memory(programs: Path) -> None:
    plant(programs, "squeue", "head -c 20000000 /dev/zero >&2; echo fine")
    answer = ask(("squeue",), soon(30))
    assert isinstance(answer, Answer)
    assert answer.text == "fine\n"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("slurm_load_jobs error: Invalid job id specified", AbsenceReason.GONE),
        ("Slurm accounting storage is disabled", AbsenceReason.SWITCHED_OFF),
        ("slurm_load_jobs error: Access/permission denied", AbsenceReason.DENIED),
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", AbsenceReason.UNREACHABLE),
        ("squeue: fatal: Could not establish a configuration source", AbsenceReason.UNREACHABLE),
        ("squeue: unrecognized option '--json'", AbsenceReason.UNSUPPORTED),
        ("There are no steps for job 77 on node n1.", AbsenceReason.EMPTY),
        ("something new", AbsenceReason.UNREADABLE),
    ],
)
def test_the_reason_is_read_from_the_error(programs: Path, words: str, reason: AbsenceReason) -> None:
    plant(programs, "squeue", f'echo "{words}" >&2; echo more >&2; exit 1')
    answer = ask(("squeue", "--jobs=5", "--format=%A"), soon())
    assert isinstance(answer, Absence)
    assert (answer.reason, answer.detail) == (reason, f"squeue --jobs=5: {words}")


def test_our_environment_stays_here_but_for_a_closed_list(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUEUE_FORMAT", "%i")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm.conf")
    plant(programs, "squeue", "env")
    answer = ask(("squeue",), soon())
    assert isinstance(answer, Answer)
    names = {line.partition("=")[0] for line in answer.text.splitlines()}
    assert {"SLURM_CONF", "LC_ALL", "SLURM_TIME_FORMAT", "PATH"} <= names
    assert names.isdisjoint({"SQUEUE_FORMAT", "SLURM_JOB_ID", "AWS_SECRET_ACCESS_KEY"})


def test_of_a_running_job_three_questions_are_asked_and_the_queue_is_not_read(programs: Path) -> None:
    plant(
        programs, "scontrol", f'[ "$3" = step ] && echo nothing || {say(JOB.format(state="RUNNING", restarts=0, nodes="n1"))}'
    )
    plant(programs, "sinfo", say("n1|mixed*|Unknown|none"))
    job = found("5")
    assert (job.state, job.nodes, job.silent_nodes, job.unknowns) == (SlurmState.RUNNING, ("n1",), ("n1",), ())
    assert asked(programs) == ["scontrol", "sinfo", "scontrol"]


def test_a_job_that_waits_costs_one_question(programs: Path) -> None:
    plant(programs, "scontrol", say(JOB.format(state="PENDING", restarts=0, nodes="")))
    assert found("5").state is SlurmState.PENDING
    assert asked(programs) == ["scontrol"]


def test_what_only_adds_may_fail_and_is_told(programs: Path) -> None:
    plant(programs, "scontrol", say(JOB.format(state="CANCELLED", restarts=0, nodes="n1")))
    plant(programs, "sacct", DISABLED)
    job = found("5")
    assert (job.state, job.cancelled_by, job.signal) == (SlurmState.CANCELLED, None, 15)
    assert [unknown.reason for unknown in job.unknowns] == [AbsenceReason.SWITCHED_OFF]


def test_accounting_says_who_cancelled(programs: Path) -> None:
    plant(programs, "scontrol", say(JOB.format(state="CANCELLED", restarts=0, nodes="n1")))
    plant(programs, "sacct", say(SACCT.format(state="CANCELLED by 1001", nodes="n1")))
    assert (found("5").cancelled_by, found("5").unknowns) == (1001, ())


def test_a_job_put_back_after_a_node_failed_names_the_node(programs: Path) -> None:
    plant(programs, "scontrol", say(JOB.format(state="PENDING", restarts=1, nodes="")))
    runs = SACCT.format(state="NODE_FAIL", nodes="n[1-2]"), SACCT.format(state="PENDING", nodes="None assigned")
    plant(programs, "sacct", say("\n".join(runs)))
    plant(programs, "sinfo", say("n1|idle|Unknown|none\nn2|down*|1796007451|Not responding"))
    job = found("5")
    assert job.previous_run is not None
    assert (job.previous_run.state, [node.name for node in job.ill_nodes]) == (SlurmState.NODE_FAIL, ["n2"])
    assert (job.nodes, job.lost_nodes) == ((), ("n2",))
    assert asked(programs) == ["scontrol", "sacct", "sinfo"]


def test_a_forgotten_job_is_found_in_the_accounting(programs: Path) -> None:
    plant(programs, "scontrol", UNKNOWN)
    plant(programs, "sacct", say(SACCT.format(state="TIMEOUT", nodes="n[1-2]")))
    job = found("5")
    assert (job.state, job.nodes, job.restarts, job.unknowns) == (SlurmState.TIMEOUT, ("n1", "n2"), 0, ())
    assert asked(programs) == ["scontrol", "sacct"]


def test_a_forgotten_job_without_accounting_is_gone_with_what_to_try(programs: Path) -> None:
    plant(programs, "scontrol", UNKNOWN)
    plant(programs, "sacct", DISABLED)
    answer = find_slurm_job("5", soon())
    assert isinstance(answer, Absence)
    assert answer.reason is AbsenceReason.GONE
    assert "MinJobAge" in answer.detail
    assert "accounting is off" in answer.detail


def test_a_component_or_task_that_is_not_names_those_that_are(programs: Path) -> None:
    plain = JOB.format(state="RUNNING", restarts=0, nodes="n1")
    parts = "\n".join(plain.replace("JobName", f"HetJobId=5 HetJobOffset={at} JobName") for at in (0, 1))
    plant(programs, "scontrol", f'[ "$4" = 5 ] || {{ {UNKNOWN}; }}; {say(parts)}')
    plant(programs, "sacct", DISABLED)
    answer = find_slurm_job("5+7", soon())
    assert isinstance(answer, Absence)
    assert answer.detail == "Slurm knows no job 5+7; it knows 5+0, 5+1"


@pytest.mark.parametrize(
    ("reason", "accounting", "state"),
    [
        ("None", "DISABLED", SlurmState.COMPLETING),
        ("TimeLimit", "DISABLED", SlurmState.TIMEOUT),
        ("None", "CANCELLED by 1001", SlurmState.CANCELLED),
        ("None", "COMPLETED", SlurmState.COMPLETING),
    ],
)
def test_a_job_that_is_completing_says_why_if_anybody_knows(
    programs: Path, reason: str, accounting: str, state: SlurmState
) -> None:
    told = JOB.format(state="COMPLETING", restarts=0, nodes="n[1-2]").replace("Reason=None", f"Reason={reason}")
    plant(programs, "scontrol", say(told))
    plant(programs, "sacct", DISABLED if accounting == "DISABLED" else say(SACCT.format(state=accounting, nodes="n[1-2]")))
    job = found("5")
    assert (job.state, job.is_ending, job.nodes) == (state, True, ("n1", "n2"))
    assert asked(programs) == ["scontrol", "sacct"]


def test_without_scontrol_squeue_answers_in_the_form_of_its_version(programs: Path) -> None:
    for name in ("scontrol", "sinfo"):
        plant(programs, name, "echo broken")
    plain = "5|5|N/A|5|RUNNING|ada|1000|n1|1796007305|NONE|UNLIMITED|None|plain"
    as_json = '{"jobs": [{"job_id": 5, "job_state": ["RUNNING"], "nodes": "n1", "name": "json"}]}'
    for version, name in (("slurm-wlm 22.05.8", "plain"), ("slurm 24.11.5", "json")):
        script = f'case "$*" in *version*) echo "{version}";; *json*) {say(as_json)}\n;; *) {say(plain)}\n;; esac'
        plant(programs, "squeue", script)
        job = found("5")
        assert (job.name, job.state, job.nodes) == (name, SlurmState.RUNNING, ("n1",))


def test_a_controller_that_does_not_answer_is_told_within_the_time(programs: Path) -> None:
    plant(programs, "scontrol", "sleep 60")
    started_s = time.monotonic()
    assert reason_of(find_slurm_job("5", soon(0.5))) is AbsenceReason.TIMED_OUT
    assert time.monotonic() - started_s < 3
    assert asked(programs) == ["scontrol"]


def test_after_one_silence_nothing_more_is_asked(programs: Path) -> None:
    plant(programs, "scontrol", say(JOB.format(state="RUNNING", restarts=0, nodes="n1")))
    plant(programs, "sinfo", "sleep 60")
    answer = find_slurm_job("5", soon(1.5))
    assert isinstance(answer, SlurmJob)
    assert [unknown.reason for unknown in answer.unknowns] == [AbsenceReason.TIMED_OUT, AbsenceReason.SKIPPED]


def test_node_lists_that_cannot_be_read_are_a_reason(programs: Path) -> None:
    plant(programs, "scontrol", say(JOB.format(state="RUNNING", restarts=0, nodes="n[1-")))
    assert reason_of(find_slurm_job("5", soon())) is AbsenceReason.UNREADABLE


@pytest.mark.parametrize("text", ["--help", "5; touch x", "a"])
def test_what_is_no_id_asks_nobody(programs: Path, text: str) -> None:
    assert reason_of(find_slurm_job(text, soon())) is AbsenceReason.UNSUPPORTED
    assert not (programs / "asked").exists()
