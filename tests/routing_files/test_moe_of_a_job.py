"""`pardbg moe` and `pardbg scan` of a process that runs here, whose probe has counted its routing."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pardbg.watchdog.outputs.validation import validate_report

pytestmark = pytest.mark.live

PARDBG = str(Path(sys.executable).with_name("pardbg"))
ROOT = Path(__file__).resolve().parents[2]
JOB = f"routing-test-{os.getpid()}"


def start(port: int, *command: str) -> subprocess.Popen[str]:
    """A rank of a world of its own, with the name of the job."""
    own = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    keep = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    environment = {**keep, **own, "PARDBG_JOB": JOB, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, *command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT
    )


def stop(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


@pytest.fixture(scope="module")
def rank() -> Iterator[subprocess.Popen[str]]:
    process = start(29_881, "-m", "tests.routing_files.counting_rank")
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        stop(process)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PARDBG, *arguments], capture_output=True, text=True, check=False, timeout=120)


def test_routing_of_a_running_rank_is_told_from_its_probe(rank: subprocess.Popen[str]) -> None:
    answer = run("moe", "--job", JOB, "--json")
    whole = json.loads(answer.stdout)
    validate_report(whole)

    assert answer.returncode == 3
    assert (whole["verdict"]["kind"], whole["verdict"]["layer"], whole["verdict"]["since_step"]) == ("drop-spike", 1, 81)
    assert (whole["job"]["id"], whole["job"]["source"]) == (JOB, "run")
    assert [(layer["layer"], layer["name"]) for layer in whole["layers"]] == [(1, "layers.1.router"), (0, "layers.0.router")]
    assert "only this machine was looked at: 1 of 2 ranks" in whole["notes"]
    assert run("moe", "--pid", str(rank.pid)).stdout.startswith("DEGRADED  layer 1 drops 33%")


def test_job_without_a_probe_and_a_name_of_two_worlds_are_one_line_each(rank: subprocess.Popen[str]) -> None:
    other = start(29_882, "-c", "import time; print('ready', flush=True); time.sleep(600)")
    try:
        assert other.stdout is not None
        other.stdout.readline()
        silent, several = run("moe", "--pid", str(other.pid)), run("moe", "--job", JOB)
    finally:
        stop(other)
    assert rank.poll() is None
    assert (silent.returncode, silent.stdout) == (2, "")
    assert "counts how it routes: no probe runs in it; start it with `pardbg run -- CMD`" in silent.stderr
    assert several.returncode == 2
    assert f"  pardbg moe --pid {rank.pid}" in several.stderr


@pytest.mark.slow
def test_scan_of_a_job_that_does_not_hang_tells_of_its_routing(rank: subprocess.Popen[str]) -> None:
    whole = json.loads(run("scan", "--pid", str(rank.pid), "--json", "--interval", "1").stdout)
    assert ("drop-spike", 1) in {(finding["kind"], finding["layer"]) for finding in whole["findings"]}


def test_routing_of_a_rank_that_was_killed_is_told_from_what_it_left(rank: subprocess.Popen[str]) -> None:
    rank.kill()
    rank.wait()
    answer = run("moe", "--pid", str(rank.pid))
    assert answer.returncode == 3
    assert answer.stdout.startswith("DEGRADED  layer 1 drops 33%")
    assert "these are the last steps" in " ".join(answer.stdout.split())
