"""Running jobs: containers, interpreters, recorders, settings."""

import pytest
from msgspec.structs import replace

from pardbg.collectors.node.surroundings import Denied, Processes
from pardbg.watchdog.doctor.check import State
from pardbg.watchdog.doctor.jobs import (
    check_attach,
    check_jobs,
    check_nccl_timeout,
    check_recorder,
    check_recorder_access,
    read_torch_version,
)
from pardbg.watchdog.doctor.namespaces import check_mount_namespace, check_pid_namespace
from pardbg.watchdog.doctor.stacks import check_pythons
from pardbg.watchdog.doctor.table import examine
from pardbg.watchdog.doctor.versions import check_torch_versions
from tests.doctor.machines import HOST, ROOT, TRIAL, WELL, job, machine, only

INSIDE = replace(ROOT, namespaces=replace(HOST, pid="pid:[4026532100]"))


def test_a_container_without_jobs_limits_and_one_with_the_job_does_not() -> None:
    assert only(check_pid_namespace(machine())).state is State.OK
    assert only(check_pid_namespace(machine(own=INSIDE))).state is State.LIMITS
    assert only(check_pid_namespace(machine(own=INSIDE, processes=job({})))).state is State.OK
    nameless = replace(ROOT, namespaces=replace(HOST, pid=""))
    assert only(check_pid_namespace(machine(own=nameless))).state is State.UNKNOWN


def test_ranks_in_another_mount_namespace_are_named() -> None:
    check = only(check_mount_namespace(machine(processes=job({}, {}, is_at_home=False))))
    assert check.state is State.LIMITS
    assert check.seen == "--job j: ranks 0-1 in another mount namespace than pardbg"
    refused = only(check_mount_namespace(machine(processes=job({}, is_at_home=False, why_no_files="no openat2"))))
    assert (refused.state, refused.seen.rpartition("; ")[2]) == (State.LIMITS, "no openat2")
    assert only(check_mount_namespace(machine(processes=job({}, is_at_home=False, why_no_files="")))).state is State.OK
    assert only(check_mount_namespace(machine(processes=job({})))).state is State.OK


def test_without_jobs_our_files_are_compared_with_the_machines() -> None:
    elsewhere = replace(ROOT, namespaces=replace(HOST, mount="mnt:[4026532500]"))
    assert only(check_mount_namespace(machine(own=elsewhere))).state is State.UNKNOWN
    unreadable = replace(elsewhere, init=replace(HOST, mount=""))
    assert only(check_mount_namespace(machine(own=unreadable))).state is State.OK


def test_jobs_are_listed_by_the_option_that_means_them() -> None:
    assert only(check_jobs(machine(processes=job({}, {})))).seen == "running here: --job j (2 ranks)"
    assert only(check_jobs(machine())).seen == "no job runs here"
    assert "other-users" in only(check_jobs(machine(processes=Processes(denied=Denied(count=1, uids=(0,)))))).seen


def test_processes_that_do_not_answer_and_machines_that_do_not() -> None:
    _, silent = check_jobs(machine(processes=Processes(silent=(41, 42))))
    assert (silent.name, silent.state) == ("silent-processes", State.LIMITS)
    assert "41, 42" in silent.seen
    assert only(check_jobs(machine(processes=Processes(problem="no process could be looked into")))).state is State.BLOCKS


@pytest.mark.parametrize(("python", "state"), [(11, State.OK), (14, State.OK), (15, State.BLOCKS), (None, State.UNKNOWN)])
def test_a_python_newer_than_py_spy_knows_blocks(python: int | None, state: State) -> None:
    assert only(check_pythons(machine(processes=job({}, python=python)))).state is state


def test_a_py_spy_that_does_not_say_what_it_knows_leaves_it_open() -> None:
    assert TRIAL.py_spy is not None
    trial = replace(TRIAL, py_spy=replace(TRIAL.py_spy, newest_python=None))
    assert only(check_pythons(machine(trial=trial, processes=job({})))).state is State.UNKNOWN


@pytest.mark.parametrize(
    ("recorder", "torch", "state"),
    [
        ({}, (2, 13), State.OK),
        ({}, (2, 11), State.OK),
        ({}, (2, 10), State.LIMITS),
        ({}, (2, 9), State.LIMITS),
        ({}, None, State.UNKNOWN),
        ({"TORCH_FR_BUFFER_SIZE": "0"}, (2, 13), State.LIMITS),
        ({"TORCH_FR_BUFFER_SIZE": "0"}, None, State.LIMITS),
        ({"TORCH_FR_BUFFER_SIZE": "2000"}, (2, 10), State.OK),
        ({"TORCH_NCCL_TRACE_BUFFER_SIZE": "2000"}, None, State.OK),
    ],
)
def test_a_recorder_is_off_by_size_0_or_by_an_old_torch(
    recorder: dict[str, str], torch: tuple[int, int] | None, state: State
) -> None:
    check = only(check_recorder(machine(processes=job({"TORCH_FR_BUFFER_SIZE": "9"}, recorder, torch=torch))))
    assert check.state is state
    assert ("rank 1" in check.seen) is (state is not State.OK)


@pytest.mark.parametrize(
    ("environment", "torch", "state"),
    [
        ({}, "2.13.0+cpu", State.OK),
        ({}, "2.9.1", State.LIMITS),
        ({}, None, State.UNKNOWN),
        ({"TORCH_FR_BUFFER_SIZE": "0"}, "2.13.0", State.LIMITS),
        ({"TORCH_FR_BUFFER_SIZE": "5000"}, None, State.OK),
    ],
)
def test_without_a_job_the_environment_of_the_next_one_is_judged(
    environment: dict[str, str], torch: str | None, state: State
) -> None:
    surroundings = replace(machine(environment=environment), software=replace(WELL.software, torch=torch))
    check = only(check_recorder(surroundings))
    assert check.state is state
    assert "here" in check.seen


def test_a_recorder_that_is_on_may_still_be_out_of_reach() -> None:
    closed, open_ = job({}), job({"TORCH_NCCL_DEBUG_INFO_PIPE_FILE": "/scratch/fr"})
    assert only(check_recorder_access(machine(processes=closed))).state is State.UNKNOWN
    assert only(check_recorder_access(machine(processes=open_))).state is State.OK
    assert list(check_recorder_access(machine(processes=job({"TORCH_FR_BUFFER_SIZE": "0"})))) == []


def test_attaching_says_what_it_could_do_for_each_job() -> None:
    check = only(check_attach(machine(processes=job({}, {}))))
    assert (check.state, check.seen) == (State.OK, "--job j: could reach the recorders of ranks 0-1")


def test_attaching_that_is_forbidden_is_said_and_is_no_fault() -> None:
    check = only(check_attach(machine(processes=job({"PARDBG_ATTACH": "never"}, {}))))
    assert check.state is State.OK
    assert check.seen == "--job j: could reach the recorders of rank 1; forbidden by rank 0"
    assert only(check_attach(machine(processes=job({"PARDBG_ATTACH": "never"})))).state is State.OK


def test_attaching_that_is_not_possible_now_says_why_and_is_no_fault() -> None:
    check = only(check_attach(machine(processes=job({}, {}, why_no_attach="it is stopped"))))
    assert (check.state, check.seen) == (State.UNKNOWN, "--job j: of others not now (it is stopped)")
    assert "pardbg run" in (check.remedy or "")
    assert list(check_attach(machine(processes=job({}, why_no_attach=None)))) == []


def test_nccl_timeout_is_no_variable_wherever_it_is_set() -> None:
    in_job = only(check_nccl_timeout(machine(processes=job({}, {"NCCL_TIMEOUT": "set"}))))
    assert in_job.state is State.LIMITS
    assert in_job.seen == "--job j: NCCL_TIMEOUT is set in rank 1: there is no such variable, nobody reads it"
    assert "init_process_group(timeout=" in (in_job.remedy or "")
    assert only(check_nccl_timeout(machine(environment={"NCCL_TIMEOUT": "set"}))).command == "unset NCCL_TIMEOUT"
    assert list(check_nccl_timeout(machine(processes=job({})))) == []


def test_each_version_of_torch_says_what_it_allows() -> None:
    assert only(check_torch_versions(machine(processes=job({}, torch=(2, 13))))).seen.endswith("with gloo, too")
    assert "asked for" in only(check_torch_versions(machine(processes=job({}, torch=(2, 9))))).seen
    assert list(check_torch_versions(machine())) == []


@pytest.mark.parametrize(
    ("text", "version"), [("2.13.0+cpu", (2, 13)), ("2.9", (2, 9)), ("nightly", None), ("2.x", None), (None, None)]
)
def test_versions_are_read_as_numbers(text: str | None, version: tuple[int, int] | None) -> None:
    assert read_torch_version(text) == version


def test_a_well_machine_is_clear_and_one_thing_makes_it_3() -> None:
    assert examine(machine()).exit_code == 0
    assert examine(machine(processes=job({}, {}))).exit_code == 0
    assert examine(machine(environment={"NCCL_TIMEOUT": "set"})).exit_code == 3
