"""`pardbg scan` right after a job has ended, from what the probes of its ranks have left."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.live.running import Launcher, RunningJob, running_job
from tests.live.scanning import Scan

JOB = f"crash-{os.getpid()}"  # others may run these tests at the same time

pytestmark = pytest.mark.live

STARTUP = Path(__file__).parents[2] / "collectors" / "probe" / "startup"
MEMORY_BYTES = 3 * 1024**3  # four ranks and a launcher take a half of it
CGROUPS = Path("/sys/fs/cgroup")

slow = pytest.mark.slow


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where probes keep their files, and scans look for them."""
    made = tmp_path / "pardbg"
    made.mkdir(mode=0o700)
    monkeypatch.setenv("PARDBG_DIR", str(made))
    return made


@pytest.fixture
def little_memory() -> Iterator[Path]:
    """A memory cgroup of our own, of either version."""
    own = Path("/proc/self/cgroup").read_text()
    first = next((line.split(":")[2] for line in own.splitlines() if "memory" in line.split(":")[1].split(",")), None)
    parent = CGROUPS / "memory" / first.lstrip("/") if first is not None else CGROUPS
    folder, limit = parent / f"pardbg-{uuid.uuid4().hex[:8]}", "memory.max" if first is None else "memory.limit_in_bytes"
    try:
        folder.mkdir()
        (folder / limit).write_text(str(MEMORY_BYTES))
    except OSError as error:
        if folder.is_dir():
            folder.rmdir()
        pytest.skip(f"no memory cgroup can be made here: {error.strerror}")
    yield folder
    folder.rmdir()


def probed(root: Path) -> dict[str, str]:
    """What `pardbg run` sets, as far as it matters here."""
    return {"PYTHONPATH": str(STARTUP), "PARDBG_JOB": JOB, "PARDBG_DIR": str(root)}


def scan_after(fault: str, root: Path, *, launcher: Launcher = "torchrun", prefix: tuple[str, ...] = ()) -> Scan:
    """Runs a job to its end and scans what is left; the saved evidence must say the same."""
    arguments = ("train", "--fault", fault, "--steps", "20")
    folder = root.parent / "job"
    with running_job(*arguments, folder=folder, launcher=launcher, env=probed(root), prefix=prefix) as job:
        job.wait_until_ended()
        reap(job)
    scan = Scan.of("scan", "--job", JOB, "--save", str(root.parent / "saved"))
    again = Scan.of_files(root.parent / "saved")
    assert (again.kind, again.cause, again.blamed) == (scan.kind, scan.cause, scan.blamed), again.summary
    return scan


def reap(job: RunningJob) -> None:
    """Plain launchers take the exit code of what they have started."""
    if job.launcher_pid is None:
        for rank in job.pids:
            job.reap(rank)


@pytest.mark.parametrize(
    ("fault", "launcher", "cause"),
    [
        ("raises", "torchrun", "exception"),
        ("exits", "plain", "exited"),
        ("killed", "torchrun", "signal"),
        pytest.param("raises", "plain", "exception", marks=slow),
        pytest.param("exits", "torchrun", "exited", marks=slow),
        pytest.param("killed", "plain", "signal", marks=slow),
        pytest.param("crashes", "torchrun", "signal", marks=slow),
        pytest.param("crashes", "plain", "signal", marks=slow),
        pytest.param("returns", "torchrun", "exited", marks=slow),
        pytest.param("returns", "plain", "exited", marks=slow),
    ],
)
def test_rank_that_ended_first_is_named_after_the_job_has_ended(fault: str, launcher: Launcher, cause: str, root: Path) -> None:
    scan = scan_after(fault, root, launcher=launcher)

    assert (scan.report["status"], scan.exit_code) == ("failed", 3), scan.summary
    assert (scan.kind, scan.cause, scan.blamed) == ("dead-rank", cause, {2}), scan.summary
    assert (scan.report["job"]["source"], scan.report["job"]["id"]) == ("run", JOB)
    assert len(scan.report["sampled_at"]) == 1
    assert any("the job has ended" in note for note in scan.report["notes"])


@slow
def test_rank_that_was_killed_for_memory_is_named(root: Path, little_memory: Path) -> None:
    prefix = ("sh", "-c", f'echo $$ > {little_memory}/cgroup.procs && exec "$@"', "sh")
    scan = scan_after("swells", root, prefix=prefix)
    counts = {json.loads(path.read_text())["oom_kills"] for path in root.glob("*/rank.json")}

    cause = "signal" if counts == {None} else "oom-killed"  # where no cgroup tells, it was killed all the same
    assert (scan.report["status"], scan.exit_code) == ("failed", 3), scan.summary
    assert (scan.kind, scan.cause, scan.blamed) == ("dead-rank", cause, {2}), scan.summary


@slow
def test_job_that_has_finished_is_healthy(root: Path) -> None:
    scan = scan_after("none", root)

    assert (scan.report["status"], scan.exit_code, scan.kind) == ("healthy", 0, None), scan.summary


@slow
def test_rank_of_a_living_job_that_has_ended_tells_why(root: Path) -> None:
    """The others wait for a replacement, for ever; plain launchers end nobody."""
    arguments = ("train", "--fault", "killed-awaited")
    with running_job(*arguments, folder=root.parent / "job", launcher="plain", env=probed(root)) as job:
        job.wait_until_hung()
        job.reap(2)
        scan = Scan.of("scan", "--job", JOB)

    assert (scan.report["status"], scan.exit_code) == ("hung", 3), scan.summary
    assert (scan.kind, scan.cause, scan.blamed) == ("dead-rank", "signal", {2}), scan.summary
    assert scan.verdict["culprits"][0]["pid"] is not None


@slow
def test_local_scan_without_a_living_job_names_the_command_for_the_ended_one(root: Path) -> None:
    scan_after("exits", root)
    command = [sys.executable, "-m", "pardbg", "scan", "--local"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)

    if "worlds" in done.stderr or "running here" in done.stderr or done.returncode != 2:
        pytest.skip("other jobs run on this machine")
    assert "the last job here ended" in done.stderr
    assert f"pardbg scan --job {JOB}" in done.stderr
