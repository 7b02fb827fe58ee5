"""What `--print-env` prints: a shell takes it back unchanged, whatever the user's values hold."""

import json
import os
import subprocess

import pytest

from pardbg.watchdog.run.environment import Plan
from pardbg.watchdog.run.printing import render_json, render_lines

VALUES = ["20000", "/a b/$HOME/`id`", "it's", 'say "x"', "", "a\\nb", "/ä:\udcff"]


@pytest.mark.parametrize("value", VALUES)
def test_a_shell_reads_the_lines_back_bit_by_bit(value: str) -> None:
    lines = render_lines(Plan(job="j", added={"PYTHONPATH": value}, kept={"TORCH_FR_BUFFER_SIZE": "7"}))
    text = lines.encode(errors="surrogateescape")
    command: list[str | bytes] = ["/bin/sh", "-c", 'set -a; eval "$1"; set +a; env -0', "sh", text]
    done = subprocess.run(command, env={"PATH": os.environ["PATH"]}, capture_output=True, check=True)
    shown = done.stdout.split(b"\0")
    assert b"PYTHONPATH=" + value.encode(errors="surrogateescape") in shown
    assert not [entry for entry in shown if entry.startswith(b"TORCH")]


@pytest.mark.parametrize("value", ["1\ntouch /planted", "1\r\nx", "1\x1b[2J", "1\u2028x", "1\udcff"])
def test_a_value_of_the_user_never_leaves_its_comment(value: str) -> None:
    lines = render_lines(Plan(job="j", added={}, kept={"TORCH_FR_BUFFER_SIZE": value})).splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("# TORCH_FR_BUFFER_SIZE=1")
    assert lines[0].endswith("  (yours)")
    assert lines[0].isprintable()


def test_json_is_one_object_that_holds_everything() -> None:
    plan = Plan(job="j", added={"PYTHONPATH": "/a:\udcff"}, kept={"TORCH_FR_BUFFER_SIZE": "7\n"})
    assert json.loads(render_json(plan)) == {
        "job": "j",
        "set": {"PYTHONPATH": "/a:\udcff"},
        "yours": {"TORCH_FR_BUFFER_SIZE": "7\n"},
    }
    assert render_json(plan).isascii()
