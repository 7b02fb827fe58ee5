"""How the nodes of a job are reached, and what is said where they cannot be."""

import os
import time
from pathlib import Path

import pytest

from pardbg.collectors.jobs.query import JobQuery
from pardbg.collectors.jobs.slurm.job import JobStep, SlurmJob, SlurmPart
from pardbg.collectors.parsing.slurm_record import SlurmState
from pardbg.watchdog.commands.scanning import Request, check_options, run_scan
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason, JobSource, Status
from pardbg.watchdog.outputs.exit_code import exit_code
from pardbg.watchdog.scan.here import Elsewhere, scan_here
from pardbg.watchdog.scan.nodes.hosts import read_hosts
from pardbg.watchdog.scan.nodes.reaching import Via, choose_route
from pardbg.watchdog.scan.nodes.slurm_steps import check_step, explain, name_on_nodes
from pardbg.watchdog.scan.nodes.through_slurm import become_owner, through_slurm
from pardbg.watchdog.scan.scan import Settings
from pardbg.watchdog.scan.unseen import tell_unseen

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
STEPS = (
    JobStep(step="batch", name="batch", nodes=("n1",), n_tasks=1, started_at=None),
    JobStep(step="0", name="train", nodes=("n1", "n2"), n_tasks=4, started_at=None),
)
HET = SlurmJob(
    spelled="7",
    job_id=7,
    het_job_id=7,
    uid=0,
    state=SlurmState.RUNNING,
    nodes=("n1", "n2", "n3"),
    silent_nodes=("n3",),
    parts=(
        SlurmPart(het_offset=0, job_id=7, nodes=("n1",)),
        SlurmPart(het_offset=1, job_id=8, nodes=("n2", "n3", "n1")),
    ),
)


def plain(step: str | None) -> SlurmJob:
    return SlurmJob(spelled="7", job_id=7, state=SlurmState.RUNNING, nodes=("n1",), steps=STEPS, step=step)


@as_root
def test_root_becomes_the_owner_of_a_job_and_nobody_else_does() -> None:
    assert become_owner(65534)[:2] == ("setpriv", "--reuid=65534")
    assert become_owner(0) == become_owner(None) == ()


@as_root
def test_owner_without_an_account_here_is_a_clear_error() -> None:
    with pytest.raises(InputError, match="uid 3999999, which has no account here"):
        become_owner(3999999)


def test_each_component_of_a_het_job_has_an_srun_of_its_own_and_a_shared_node_one() -> None:
    way = through_slurm(HET, "pardbg")
    assert [launch.nodes for launch in way.launches] == [("n1",), ("n2",)]
    for offset, launch in enumerate(way.launches):
        assert launch.command[:3] == ("srun", f"--het-group={offset}", "--jobid=7")
        assert way.regroup is not None
        assert way.regroup(launch.nodes) == launch


def test_processes_of_a_het_job_are_asked_for_by_its_leaders_number() -> None:
    assert (name_on_nodes(HET), name_on_nodes(plain(None))) == ("slurm:7", None)


def test_a_step_that_does_not_run_is_an_error_that_names_those_that_do() -> None:
    check_step(plain("0"))
    check_step(plain("batch"))
    for step in ("7", "extern"):
        with pytest.raises(InputError, match=rf"runs no step {step} now; the job runs batch on n1, 0 \(train\) on n\[1-2\]"):
            check_step(plain(step))


def test_a_step_without_ranks_is_told_with_those_that_there_are() -> None:
    told = explain(InputError("n1: none"), plain("batch"))
    assert str(told).startswith("no rank of step batch of Slurm job 7 was found on n1; the job runs batch on n1, 0 (train)")
    assert told.remedy == "pardbg scan --job 7.0 or pardbg scan --job 7"


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("n[1-2],m", {"n1": "n1", "n2": "n2", "m": "m"}),
        ("ada@n[1-2],bob@m", {"n1": "ada@n1", "n2": "ada@n2", "m": "bob@m"}),
        ("ada@10.0.0.7, n1", {"10.0.0.7": "ada@10.0.0.7", "n1": "n1"}),
        ("ada@fe80::1%eth0", {"fe80::1%eth0": "ada@fe80::1%eth0"}),
    ],
)
def test_hosts_may_be_folded_and_have_a_user_who_is_no_part_of_their_name(text: str, targets: dict[str, str]) -> None:
    assert read_hosts(text) == targets


@pytest.mark.parametrize("text", ["ada@", "@n1", "a b@n1", "-o@n1;id", "ada@n1,bob@n1", "n[1-", "a@b@c", "ada@$(id)"])
def test_hosts_that_ssh_could_not_be_given_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--hosts"):
        read_hosts(text)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request(job=""), "'' names no job"),
        (Request(job="k8s:"), "'k8s:' names no job"),
        (Request(job="\udcff\udcfe", via="agents"), r"--job '\\udcff\\udcfe' is no text"),
        (Request(job="slurm: "), "names no job"),
        (Request(job=" 1"), "spaces around"),
        (Request(job="slurm: 1"), "spaces around"),
        *((Request(job=text), "no job id such as") for text in ("1,2", "1.0.0", "2_[1-2]", "-1", "slurm:x", "1," * 90)),
        (Request(is_local=True, hosts="n1"), "--hosts needs"),
        (Request(is_local=True, remote_command="x", is_remote_typed=True), "--remote-command is for other nodes"),
        (Request(job="1", via="local", remote_command="x", is_remote_typed=True), "--remote-command is for other nodes"),
    ],
)
def test_options_that_do_not_go_together_are_refused(request_: Request, words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_options(request_)


@pytest.mark.parametrize("text", ["1234", "1234_7", "1+1.0", "5.batch", "2026-11-30", "torchrun:1.0.0", "k8s:a/1", "exp-1,2"])
def test_ids_of_slurm_and_names_that_look_nearly_so_are_taken(text: str) -> None:
    check_options(Request(job=text))


def test_a_remote_command_of_the_environment_forbids_no_local_scan() -> None:
    check_options(Request(is_local=True, remote_command="x"))


@pytest.mark.parametrize(("via", "hosts"), [(Via.SRUN, "n1"), (Via.KUBECTL, "n1"), (Via.LOCAL, "n1"), (Via.AUTO, " ")])
def test_hosts_are_for_ssh_only_and_must_be_some(via: Via, hosts: str) -> None:
    with pytest.raises(InputError, match=f"--hosts '{hosts}' with --via {via.value}"):
        choose_route(via, "7", hosts, None)


def test_an_id_that_slurm_does_not_know_is_looked_for_here_and_the_error_says_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("scontrol", "squeue"):
        (tmp_path / name).write_text("#!/bin/sh\necho 'slurm_load_jobs error: Invalid job id specified' >&2\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    route = choose_route(Via.AUTO, "987654", None, None)
    assert (route.way, route.slurm_job) == (None, None)
    with pytest.raises(InputError, match=r"987654.*; no rank of Slurm job 987654 runs on this machine") as caught:
        scan_here(JobQuery(job="987654"), Elsewhere(route.problem), Settings(), lambda _: None)
    assert route.problem
    assert len(str(caught.value).partition(" (running here")[0]) <= 200, caught.value
    assert str(caught.value).startswith(route.problem)


def test_a_slurm_that_does_not_answer_is_no_wrong_id_and_leaves_time_to_look_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("scontrol", "squeue"):
        (tmp_path / name).write_text("#!/bin/sh\nexec sleep 60\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    began_s = time.monotonic()
    route = choose_route(Via.AUTO, "7", None, None, within_s=1.0)
    assert time.monotonic() - began_s < 0.9
    assert route.way is None
    assert (
        route.problem == "Slurm does not answer: scontrol show job 7 did not answer in time: the controller may be busy or gone"
    )
    assert [absence.reason for absence in route.unseen.values()] == [AbsenceReason.TIMED_OUT]


SCONTROL = (
    "JobId=7 JobName=run UserId=root(0) GroupId=root(0) JobState={state} Reason={reason} ExitCode=0:15 StartTime=1796007305 "
    "EndTime=1796007905 NodeList=n[1-2] NumTasks=2 StdOut=/logs/slurm-7.out Power="
)
SRUN = "srun: error: Unable to create step for job 7: Job/step already completing or completed"


def plant(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Slurm of shell scripts, in a folder where no rank has left anything."""
    for name in ("squeue", "sinfo", "sacct", "srun"):
        plant(tmp_path, name, "exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("PARDBG_DIR", str(tmp_path / "none"))
    return tmp_path


def test_a_job_that_is_ending_is_undetermined_and_says_how_to_see_what_is_stuck(slurm: Path) -> None:
    plant(slurm, "scontrol", f"echo '{SCONTROL.format(state='COMPLETING', reason='None')}'")
    report = run_scan(Request(job="7"), lambda _: None).report
    assert (report.status, report.verdict, exit_code(report, strict=False)) == (Status.UNDETERMINED, None, 4)
    assert "Slurm job 7 is ending: its processes are being killed; one that is stuck" in report.notes[0]
    assert "pardbg scan --job 7 --hosts 'n[1-2]'" in report.notes[1]
    assert "PARDBG_DIR=DIR pardbg scan --job 7" in report.notes[2]
    assert report.notes[3] == "the job's output: tail -n 50 /logs/slurm-7.out"


def test_a_job_that_is_ending_for_a_known_reason_has_failed_and_may_be_looked_at_by_ssh(slurm: Path) -> None:
    plant(slurm, "scontrol", f"echo '{SCONTROL.format(state='COMPLETING', reason='TimeLimit')}'")
    report = run_scan(Request(job="7"), lambda _: None).report
    assert (report.status, exit_code(report, strict=False)) == (Status.FAILED, 4)
    assert "it is still ending" in report.notes[0]
    assert "Slurm job 7 reached its time limit" in report.notes[-1]  # which is the headline
    route = choose_route(Via.SSH, "7", None, None)
    assert (route.is_slurms_alone, route.way and route.way.nodes) == (False, ("n1", "n2"))


def test_a_job_that_ends_between_our_question_and_srun_is_asked_about_once_more(slurm: Path) -> None:
    running, ending = (SCONTROL.format(state=state, reason="TimeLimit") for state in ("RUNNING", "COMPLETING"))
    plant(slurm, "srun", f"echo '{SRUN}' >&2; touch {slurm}/ended; exit 1")
    plant(slurm, "scontrol", f"[ -e {slurm}/ended ] && echo '{ending}' || echo '{running}'")
    report = run_scan(Request(job="7"), lambda _: None).report
    assert report.status is Status.FAILED
    assert "Slurm job 7 reached its time limit" in report.notes[-1]


def test_another_users_job_is_for_its_owner_or_root(slurm: Path) -> None:
    plant(slurm, "srun", "echo 'srun: error: Unable to create step for job 7: Access/permission denied' >&2; exit 1")
    plant(slurm, "scontrol", f"echo '{SCONTROL.format(state='RUNNING', reason='None')}'")
    with pytest.raises(InputError, match="only the owner") as caught:
        run_scan(Request(job="7"), lambda _: None)
    assert caught.value.remedy == "ask its owner, root, or root to scan it"


def test_a_job_of_which_nothing_could_be_seen_is_undetermined_and_not_wrong_usage() -> None:
    absence = Absence(reason=AbsenceReason.TIMED_OUT, detail="no word from it")
    report = tell_unseen("7", JobSource.SLURM, "no node answers", {"n1": absence, "": absence}, Settings()).report
    assert (report.status, report.verdict, exit_code(report, strict=False)) == (Status.UNDETERMINED, None, 4)
    assert "no node answers" in report.notes
    assert {unknown.host for unknown in report.unknowns} >= {"n1", None}
