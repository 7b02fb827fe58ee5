"""What is read of ourselves, of py-spy and of ranks: literal text in, values out; and the trial on a real process."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pardbg.collectors.node import own_children
from pardbg.collectors.node.answers import RankLook, RanksRequest, RankTarget, Trial
from pardbg.collectors.node.look_around import look_around
from pardbg.collectors.node.own_process import parse_own_status, proc_mount_options, read_settings
from pardbg.collectors.node.own_trial import trial_under_way
from pardbg.collectors.node.py_spy_trial import newest_known_python
from pardbg.collectors.node.ranks import find_python
from pardbg.collectors.node.surroundings import Capability, Namespaces
from pardbg.watchdog.errors import ParseError
from tests.collectors.live.started import identify, python, running
from tests.own_children import are_soon_gone, living_children

STATUS = """Name:\tpardbg
Umask:\t0022
Uid:\t1000\t1001\t1000\t1000
Gid:\t1000\t1000\t1000\t1000
Groups:\t4 27 1000
NSpid:\t42
CapInh:\t0000000000000000
CapPrm:\t0000000400080000
CapEff:\t0000000400080000
Seccomp:\t2
Seccomp_filters:\t1
"""


def test_our_own_status_is_read() -> None:
    own = parse_own_status(STATUS, own=Namespaces(pid="pid:[1]"), init=Namespaces())
    assert (own.uid, own.groups, own.seccomp) == (1001, (4, 27, 1000), 2)
    assert own.has(Capability.SYS_PTRACE)
    assert own.has(Capability.SYSLOG)
    assert not own.has(Capability.SYS_ADMIN)


def test_a_kernel_without_seccomp_says_nothing_of_it() -> None:
    assert parse_own_status("Uid:\t0\t0\t0\t0\nCapEff:\t0\n", own=Namespaces(), init=Namespaces()).seccomp is None


def test_another_text_is_refused() -> None:
    with pytest.raises(ParseError):
        parse_own_status("Uid:\tx\n", own=Namespaces(), init=Namespaces())


def test_of_two_mounts_of_proc_the_upper_counts() -> None:
    mounts = "22 27 0:21 / /proc rw - proc proc rw,hidepid=2\n23 22 0:22 / /proc/fs rw - tmpfs none rw\n"
    assert proc_mount_options(mounts) == ("rw", "hidepid=2")
    assert proc_mount_options(mounts + "24 27 0:23 / /proc rw - proc proc rw\n") == ("rw",)


def test_settings_are_read_and_what_is_not_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "sys/kernel/yama").mkdir(parents=True)
    (tmp_path / "self").mkdir()
    (tmp_path / "self/mountinfo").write_text("")
    (tmp_path / "sys/kernel/yama/ptrace_scope").write_text("2\n")
    settings = read_settings(tmp_path)
    assert (settings.ptrace_scope, settings.dmesg_restrict) == (2, None)


@pytest.mark.parametrize(
    ("program", "version", "newest"),
    [
        (b"..python_bindings::v3_9_5..v3_11_0..v3_13_0..", "0.4.0", 13),
        (b"stripped", "0.4.1", 13),
        (b"stripped", "0.3.14", 11),
        (b"stripped", "0.3.1", None),
        (b"", "", None),
    ],
)
def test_the_pythons_that_py_spy_knows(program: bytes, version: str, newest: int | None) -> None:
    assert newest_known_python(program, version) == newest


@pytest.mark.parametrize(
    ("program", "memory_map", "minor"),
    [
        ("/usr/bin/python3.12", "", 12),
        ("/usr/bin/python3.13t", "", 13),
        ("/opt/python3.11 (deleted)", "", 11),
        ("/app/train", "7f00-7f01 r--p 0 08:01 5    /usr/lib/libpython3.10.so.1.0\n", 10),
        ("/usr/bin/python3", "a /x/lib/python3.9/os.so\na /x/lib/python3.9/re.so\na /y/lib/python3.8/a.so\n", 9),
        ("/bin/sleep", "", None),
    ],
)
def test_the_python_of_a_process(program: str, memory_map: str, minor: int | None) -> None:
    assert find_python(program, memory_map) == minor


def test_a_rank_is_looked_at_and_one_that_is_gone_says_nothing() -> None:
    with running(python()) as pid, own_children.running_trier() as child:
        there = RankTarget(pid=pid, started_ticks=identify(pid).started_ticks, is_at_home=True)
        other = RankTarget(pid=pid, started_ticks=1, is_at_home=True)
        own_children.ask(child, RanksRequest(ranks=(there, other)))
        looks = [answer for answer in own_children.hear(child, time.monotonic() + 20) if isinstance(answer, RankLook)]
    assert {look.python for look in looks} == {sys.version_info.minor, None}


def test_the_trial_answers_everything_and_leaves_nothing_behind() -> None:
    before = living_children()
    with trial_under_way() as finish:
        trial = finish()
    assert not trial.problem
    assert None not in {getattr(trial, name) for name in Trial.__struct_fields__}
    assert are_soon_gone(before)


def test_a_trier_that_hangs_is_given_up_and_what_it_said_before_counts() -> None:
    command = 'print(\'{"type": "trial"}\', flush=True); import time; time.sleep(60)'
    with subprocess.Popen(python(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        began_s = time.monotonic()
        assert own_children.hear(child, began_s + 1.0) == [Trial()]
        assert own_children.killed_by(child) == ""
        assert time.monotonic() - began_s < 5
        child.kill()
        assert own_children.killed_by(child) == "SIGKILL"


def test_only_the_closed_list_of_our_environment_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_TIMEOUT", "planted-secret-1")
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "77")
    monkeypatch.setenv("API_KEY", "planted-secret-2")
    found = look_around()
    assert found.environment["NCCL_TIMEOUT"] == "set"
    assert found.environment["TORCH_FR_BUFFER_SIZE"] == "77"
    assert "planted-secret" not in repr(found)
    assert found.own.uid == os.geteuid()
