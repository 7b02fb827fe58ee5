"""Users, hidden processes, Yama."""

import pytest
from msgspec.structs import replace

from pardbg.collectors.node.surroundings import Denied, KernelSettings, Namespaces, Processes
from pardbg.watchdog.doctor.check import State
from pardbg.watchdog.doctor.privileges import check_other_users, check_user, check_yama
from tests.doctor.machines import HOST, ROOT, USER, machine, only


def test_with_the_capability_all_jobs_can_be_read() -> None:
    check = only(check_user(machine()))
    assert (check.state, check.seen) == (State.OK, "uid 0 with CAP_SYS_PTRACE: jobs of all users can be read")


def test_a_capability_in_a_user_namespace_is_good_for_that_only() -> None:
    inside = replace(ROOT, namespaces=replace(HOST, user="user:[4026532999]"))
    assert "all users of this user namespace" in only(check_user(machine(own=inside))).seen


def test_without_it_only_ones_own_jobs_are_read() -> None:
    assert only(check_user(machine(own=USER))).seen == "uid 1000 without CAP_SYS_PTRACE: this user's jobs only"


@pytest.mark.parametrize(
    ("option", "own", "is_hidden"),
    [
        ("hidepid=2", USER, True),
        ("hidepid=invisible", USER, True),
        ("hidepid=1", USER, True),
        ("hidepid=0", USER, False),
        ("hidepid=off", USER, False),
        ("hidepid=2", ROOT, False),
        ("hidepid=2,gid=27", replace(USER, groups=(27,)), False),
        ("hidepid=ptraceable,gid=27", replace(USER, groups=(27,)), True),
    ],
)
def test_hidepid_hides_unless_the_capability_or_the_group_is_there(option: str, own: object, is_hidden: bool) -> None:  # noqa: FBT001
    options = KernelSettings(proc_options=("rw", *option.split(",")))
    checks = list(check_other_users(replace(machine(settings=options), own=own)))
    assert ("hidden-processes" in [check.name for check in checks]) is is_hidden


def test_processes_that_refuse_are_counted_and_root_helps() -> None:
    refusing = Processes(denied=Denied(count=3, uids=(0, 1001)))
    check = only(check_other_users(machine(own=USER, processes=refusing)))
    assert check.state is State.LIMITS
    assert check.seen == "3 Python processes of uid 0, 1001 may not be looked into"
    assert check.command is not None
    assert check.command.startswith("sudo ")


def test_where_the_capability_does_not_help_a_security_module_is_named() -> None:
    check = only(check_other_users(machine(processes=Processes(denied=Denied(count=1, uids=(7,))))))
    assert check.remedy is not None
    assert "security module" in check.remedy
    assert check.command is None


@pytest.mark.parametrize(
    ("scope", "is_root", "state"),
    [
        (None, False, State.OK),
        (0, False, State.OK),
        (1, False, State.BLOCKS),
        (2, False, State.BLOCKS),
        (3, False, State.BLOCKS),
        (None, True, State.OK),
        (0, True, State.OK),
        (1, True, State.OK),
        (2, True, State.OK),
        (3, True, State.BLOCKS),
    ],
)
def test_what_each_value_of_yama_allows_a_user_and_root(scope: int | None, is_root: bool, state: State) -> None:  # noqa: FBT001
    surroundings = machine(own=ROOT if is_root else USER, settings=KernelSettings(ptrace_scope=scope))
    assert only(check_yama(surroundings)).state is state


def test_scope_3_cannot_be_lowered_so_no_command_says_it_could() -> None:
    check = only(check_yama(machine(settings=KernelSettings(ptrace_scope=3))))
    assert check.command is None
    assert "boot" in (check.remedy or "")
    assert only(check_yama(machine(own=USER, settings=KernelSettings(ptrace_scope=1)))).command == (
        "sudo sysctl kernel.yama.ptrace_scope=0"
    )


def test_root_in_a_container_is_told_to_ask_for_the_capability() -> None:
    bare = replace(ROOT, capabilities=0, namespaces=Namespaces())
    check = only(check_yama(machine(own=bare, settings=KernelSettings(ptrace_scope=1))))
    assert "--cap-add SYS_PTRACE" in (check.remedy or "")
