"""What people read: problems first, one line for what is well, 80 columns, commands whole."""

import json

from msgspec.structs import replace

from pardbg.collectors.node.surroundings import Denied, KernelSettings, Processes
from pardbg.watchdog.doctor.table import examine
from pardbg.watchdog.doctor.text import render_json, render_text
from tests.doctor.machines import USER, job, machine

SPOILT = machine(
    own=USER,
    settings=KernelSettings(ptrace_scope=1, dmesg_restrict=1),
    processes=replace(job({"NCCL_TIMEOUT": "set"}), denied=Denied(count=2, uids=(0,))),
)


def test_problems_come_first_and_what_is_well_last() -> None:
    text = render_text(examine(SPOILT))
    lines = text.splitlines()
    assert lines[0] == "BLOCKED  on node1 1 thing blocks and 2 things limit what pardbg sees of jobs"
    titles = [line for line in lines if line and not line.startswith(" ")][1:]
    assert titles == ["BLOCKS A VERDICT", "LIMITS WHAT IS SEEN", "CANNOT BE TOLD FROM HERE", "IN ORDER"]
    assert "sudo sysctl kernel.yama.ptrace_scope=0" in text


def test_what_is_well_takes_a_line_each() -> None:
    text = render_text(examine(machine()))
    assert text.startswith("CLEAR  nothing found on node1 that keeps pardbg from seeing\n")
    well = text.partition("IN ORDER\n")[2].splitlines()
    assert len(well) == sum(check.state.value == "ok" for check in examine(machine()).checks)


def test_no_line_is_longer_than_80_but_commands() -> None:
    lines = render_text(examine(SPOILT)).splitlines()
    assert [line for line in lines if len(line) > 80 and not line.strip().startswith("$ ")] == []


def test_names_that_steer_a_terminal_are_shown_harmless() -> None:
    text = render_text(examine(replace(machine(processes=Processes(problem="\x1b[31m")), host="\x1b[2J")))
    assert "\x1b" not in text
    assert "\\x1b[2J" in text


def test_json_has_every_key_and_null_where_there_is_nothing() -> None:
    document = json.loads(render_json(examine(machine())))
    assert list(document) == ["schema", "pardbg_version", "host", "checked_at", "checks"]
    assert document["schema"] == "pardbg.doctor/1"
    assert {tuple(check) for check in document["checks"]} == {("name", "state", "seen", "cost", "remedy", "command")}
    assert document["checks"][0]["remedy"] is None
