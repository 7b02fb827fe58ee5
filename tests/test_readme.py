"""Every command of the README is run, in its order, in one folder."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.running import running_job

ROOT = Path(__file__).resolve().parents[1]
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
RUN_BY_OTHERS = {
    "make test": "this is running now",
    "make demo": "tests/live run the same command without make; .ci/run and the note show make itself",
    "pip install .": "tests/test_packaging.py builds and installs the wheel",
    "pip install '.[demo]'": "the Makefile's set-up",
}
EXIT_CODES = {
    "pardbg analyze": {3},
    "pardbg demo": {0},
    "pardbg sim": {0},
    "pardbg bench": {0},
    "pardbg scan": {3},
    "pardbg doctor": {0, 3},
    "pardbg run": {0},
    "pardbg incidents": {0},
    "pardbg dashboards": {0},
    "pardbg layout": {3},
}
PID = "4711"


def commands() -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = [line for block in CONSOLE.findall(text) for line in block.splitlines() if line.startswith("$ ")]
    return [line[2:].split("  #")[0].strip() for line in lines]


@pytest.mark.live
def test_every_command_of_the_readme_works(tmp_path: Path) -> None:
    others = [command for command in commands() if command not in RUN_BY_OTHERS and command != "pardbg bench"]
    last_scan = max(index for index, command in enumerate(others) if command.startswith("pardbg scan"))
    with running_job("train", "--fault", "lock", folder=tmp_path / "running", job_id="demo") as job:
        job.wait_until_hung()
        for command in others[: last_scan + 1]:
            run_command(command, tmp_path, str(job.pids[0]))
    for command in others[last_scan + 1 :]:
        run_command(command, tmp_path, PID)


def run_command(command: str, folder: Path, pid: str) -> None:
    words = [word.replace("/tmp/", f"{folder}/").replace(PID, pid) for word in shlex.split(command)]  # noqa: S108
    assert words[0] == "pardbg", command
    pardbg = str(Path(sys.executable).with_name("pardbg"))
    run = subprocess.run([pardbg, *words[1:]], capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode in EXIT_CODES[" ".join(command.split()[:2])], f"{command}\n{run.stdout}\n{run.stderr}"


@pytest.mark.slow
def test_bench_of_the_readme_works() -> None:
    pardbg = str(Path(sys.executable).with_name("pardbg"))
    run = subprocess.run([pardbg, "bench"], capture_output=True, text=True, check=False, timeout=400, env=dict(os.environ))
    assert run.returncode == 0, run.stderr
    assert "pardbg" in run.stdout


def test_readme_starts_with_its_two_commands() -> None:
    assert commands()[:2] == ["make demo", "make test"]
