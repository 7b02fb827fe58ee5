"""What the trial on a process of our own says: memory, ptrace, seccomp, py-spy, the kernel's files."""

import pytest
from msgspec.structs import replace

from pardbg.collectors.node.answers import (
    ClockReading,
    FileClock,
    KernelLogTrial,
    MemoryTrial,
    OomCounterTrial,
    ProcessFilesTrial,
    PtraceTrial,
    PySpyTrial,
    Trial,
)
from pardbg.collectors.node.surroundings import KernelSettings
from pardbg.watchdog.doctor.check import State
from pardbg.watchdog.doctor.clocks import check_clock, check_temporary_files
from pardbg.watchdog.doctor.kernel import check_kernel_log, check_oom_counter, check_process_files
from pardbg.watchdog.doctor.stacks import check_py_spy
from pardbg.watchdog.doctor.table import examine
from pardbg.watchdog.doctor.tracing import check_memory, check_ptrace, check_seccomp, check_trial
from tests.doctor.machines import ROOT, TRIAL, USER, machine, only

FILTERED = replace(ROOT, seccomp=2)
REFUSED = replace(TRIAL, memory=MemoryTrial(call_error="EPERM"), ptrace=PtraceTrial(error="EPERM"))


@pytest.mark.parametrize(
    ("call", "file", "state"),
    [
        ("", "", State.OK),
        ("EPERM", "", State.OK),
        ("ENOSYS", "", State.OK),
        ("", "EACCES", State.LIMITS),
        ("EPERM", "EACCES", State.BLOCKS),
    ],
)
def test_memory_is_blocked_only_where_both_ways_are(call: str, file: str, state: State) -> None:
    trial = replace(TRIAL, memory=MemoryTrial(call_error=call, file_error=file))
    assert only(check_memory(machine(trial=trial))).state is state


def test_a_filter_that_refuses_is_named_once_and_ptrace_points_to_it() -> None:
    surroundings = machine(own=FILTERED, trial=REFUSED)
    seccomp, ptrace = only(check_seccomp(surroundings)), only(check_ptrace(surroundings))
    assert seccomp.state is ptrace.state is State.LIMITS
    assert seccomp.seen == "a filter is active and refuses process_vm_readv and ptrace"
    assert ptrace.remedy == "see seccomp"
    assert "native stacks" in (ptrace.cost or "")


def test_a_filter_that_refuses_nothing_is_in_order() -> None:
    assert only(check_seccomp(machine(own=FILTERED))).state is State.OK


def test_what_yama_refuses_is_not_blamed_on_the_filter() -> None:
    surroundings = machine(own=replace(USER, seccomp=2), trial=REFUSED, settings=KernelSettings(ptrace_scope=1))
    assert only(check_seccomp(surroundings)).state is State.OK
    assert only(check_ptrace(surroundings)).remedy == "Yama refuses: see yama"


def test_without_yama_and_filter_a_security_module_refuses() -> None:
    assert "AppArmor" in (only(check_ptrace(machine(trial=REFUSED))).remedy or "")


def test_a_trial_that_was_killed_blocks_and_says_where() -> None:
    trial = Trial(process_files=ProcessFilesTrial(), problem="the process that tried was killed by SIGSYS", is_killed=True)
    check = only(check_trial(machine(own=FILTERED, trial=trial)))
    assert check.state is State.BLOCKS
    assert check.seen == "the process that tried was killed by SIGSYS, at process_vm_readv"
    assert only(check_seccomp(machine(own=FILTERED, trial=trial))).state is State.UNKNOWN


def test_what_was_not_tried_is_unknown_and_never_in_order() -> None:
    checks = examine(machine(trial=Trial(problem="the trial was not done within 6 s"))).checks
    states = {check.name: check.state for check in checks}
    tried = ["memory", "ptrace", "py-spy", "process-files", "oom-counter", "kernel-log", "clock", "file-clock"]
    assert {states[name] for name in (*tried, "trial")} == {State.UNKNOWN}


@pytest.mark.parametrize(
    ("py_spy", "command"),
    [
        (PySpyTrial(), "pip install py-spy"),
        (PySpyTrial(path="/usr/bin/py-spy", problem="it does not run"), "pip install --upgrade py-spy"),
        (PySpyTrial(path="/usr/bin/py-spy", version="0.4.3", problem="it gave no stack before the deadline"), None),
    ],
)
def test_without_a_working_py_spy_a_verdict_is_blocked(py_spy: PySpyTrial, command: str | None) -> None:
    check = only(check_py_spy(machine(trial=replace(TRIAL, py_spy=py_spy))))
    assert (check.state, check.command) == (State.BLOCKS, command)
    assert "stacks" in (check.cost or "")


def test_py_spy_says_its_version_and_the_pythons_it_knows() -> None:
    assert only(check_py_spy(machine())).seen == "0.4.3, knows Python up to 3.14, works"


def test_the_kernel_log_names_the_setting_and_the_capability_that_is_missing() -> None:
    trial = replace(TRIAL, kernel_log=KernelLogTrial(way="/dev/kmsg", error="EPERM"))
    check = only(check_kernel_log(machine(own=USER, trial=trial, settings=KernelSettings(dmesg_restrict=1))))
    assert check.state is State.LIMITS
    assert check.seen == "cannot be read (/dev/kmsg: EPERM): kernel.dmesg_restrict is 1 and CAP_SYSLOG is missing"
    assert "Xid" in (check.cost or "")


def test_where_nothing_is_restricted_the_setting_is_not_blamed() -> None:
    trial = replace(TRIAL, kernel_log=KernelLogTrial(way="/dev/kmsg", error="ENOENT"))
    check = only(check_kernel_log(machine(trial=trial, settings=KernelSettings(dmesg_restrict=0))))
    assert "dmesg_restrict" not in check.seen
    assert check.command is None  # root needs no sudo


@pytest.mark.parametrize(
    ("counter", "state"),
    [
        (OomCounterTrial(path="/sys/fs/cgroup/job/memory.events"), State.OK),
        (OomCounterTrial(), State.UNKNOWN),
        (OomCounterTrial(path="/sys/fs/cgroup/memory.events", error="ENOENT"), State.UNKNOWN),
        (OomCounterTrial(path="/sys/fs/cgroup/job/memory.events", error="EACCES"), State.LIMITS),
    ],
)
def test_a_control_group_without_counter_says_nothing_of_jobs(counter: OomCounterTrial, state: State) -> None:
    assert only(check_oom_counter(machine(trial=replace(TRIAL, oom_counter=counter)))).state is state


def test_files_of_processes_that_say_nothing_are_named_with_what_they_would_say() -> None:
    trial = replace(TRIAL, process_files=ProcessFilesTrial(unusable=("syscall", "sched")))
    check = only(check_process_files(machine(trial=trial)))
    assert check.seen == "syscall and sched of a process of our own cannot be read"
    assert check.cost == "the call and the file that a rank waits in; since when a rank has not run"


@pytest.mark.parametrize("is_synchronised", [True, False, None])
def test_how_far_nodes_are_apart_is_never_known_here(is_synchronised: bool | None) -> None:  # noqa: FBT001
    clock = ClockReading(is_synchronised=is_synchronised, largest_error_s=0.012)
    check = only(check_clock(machine(trial=replace(TRIAL, clock=clock))))
    assert (check.state, check.command) == (State.UNKNOWN, "chronyc tracking")
    assert ("0.012 s" in check.seen) is (is_synchronised is True)


@pytest.mark.parametrize(
    ("found", "name", "state"),
    [
        (FileClock(folder="/scratch", ahead_s=0.4), "file-clock", State.OK),
        (FileClock(folder="/scratch", ahead_s=63.0), "file-clock", State.LIMITS),
        (FileClock(folder="/scratch", ahead_s=-63.0), "file-clock", State.LIMITS),
        (FileClock(folder="/scratch", error="EROFS"), "temporary-files", State.LIMITS),
    ],
)
def test_files_dated_by_another_clock_and_folders_without_room(found: FileClock, name: str, state: State) -> None:
    check = only(check_temporary_files(machine(trial=replace(TRIAL, file_clock=found))))
    assert (check.name, check.state) == (name, state)
    assert "/scratch" in check.seen
