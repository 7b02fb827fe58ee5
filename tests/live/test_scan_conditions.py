"""`pardbg scan` under conditions: healthy jobs, changing jobs, missing rights, traps - the right answer or a clear unknown."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.live.running import process_state, running_job
from tests.live.scanning import Scan, run_scan

pytestmark = pytest.mark.live

NOBODY = 65534
PLANTED = "PLANTED-SECRET"  # in everything that the program plants
REFUSE_PTRACE = Path(__file__).with_name("refuse_ptrace.py")


@pytest.mark.parametrize(
    ("step_s", "ready_step"),
    [("0.05", "10"), pytest.param("2.5", "2", marks=pytest.mark.slow), pytest.param("10", "0", marks=pytest.mark.slow)],
)
def test_healthy_job_is_healthy_however_long_its_steps_are(step_s: str, ready_step: str, tmp_path: Path) -> None:
    arguments = ("--fault", "none", "--step-s", step_s, "--ready-step", ready_step)
    with running_job("train", *arguments, folder=tmp_path, job_id="healthy") as job:
        job.wait_until_hung()
        scans = [run_scan(("--job", "healthy")) for _ in range(2)]

    for scan in scans:
        assert (scan.exit_code, scan.report["status"], scan.report["findings"]) == (0, "healthy", []), scan.summary


def test_rank_that_reads_and_goes_on_is_a_slow_phase(tmp_path: Path) -> None:
    with running_job("train", "--fault", "slow-read", folder=tmp_path, job_id="slow") as job:
        job.wait_until_hung()
        scan = run_scan(("--job", "slow"))

    assert (scan.exit_code, scan.report["status"], scan.kind, scan.blamed) == (0, "slow", "slow-phase", set()), scan.summary
    assert [subject["rank"] for subject in scan.verdict["waiting_for"]] == [2]


def test_of_two_worlds_each_is_scanned_by_its_name(tmp_path: Path) -> None:
    healthy, locked = ("train", "--fault", "none"), ("train", "--fault", "lock")
    with (
        running_job(*healthy, folder=tmp_path / "a", ranks=3, job_id="world-a") as first,
        running_job(*locked, folder=tmp_path / "b", ranks=3, job_id="world-b") as second,
    ):
        first.wait_until_hung()
        second.wait_until_hung()
        scans = {name: run_scan(("--job", name)) for name in ("world-a", "world-b")}
        command = [sys.executable, "-m", "pardbg", "scan", "--local"]
        ambiguous = subprocess.run(command, capture_output=True, text=True, check=False)

    assert [scans[name].exit_code for name in ("world-a", "world-b")] == [0, 3], scans["world-a"].summary
    assert scans["world-b"].blamed == {2}
    assert ambiguous.returncode == 2
    assert re.search(r"^ +pardbg scan --job world-a +#", ambiguous.stderr, re.MULTILINE), ambiguous.stderr
    assert re.search(r"^ +pardbg scan --job world-b +#", ambiguous.stderr, re.MULTILINE), ambiguous.stderr


@pytest.mark.slow
def test_job_that_keeps_restarting_is_never_called_hung(tmp_path: Path) -> None:
    arguments = ("train", "--fault", "fails-often")
    with running_job(*arguments, folder=tmp_path, job_id="again", launcher_args=("--max-restarts=100",)) as job:
        job.wait_until_hung()
        scans = [scan for _ in range(4) if (scan := _scan_unless_between("again")) is not None]

    for scan in scans:
        assert scan.report["status"] in {"healthy", "undetermined", "failed"} or scan.kind == "dead-rank", scan.summary
        assert scan.blamed <= {2}, scan.summary


@pytest.mark.slow
def test_rank_that_ends_between_the_samples_is_dead_or_unknown(tmp_path: Path) -> None:
    with running_job("train", "--fault", "ends", folder=tmp_path, job_id="ends") as job:
        job.wait_until_hung(settle_s=0)
        scan = run_scan(("--job", "ends"), "--interval", "4")

    assert scan.exit_code in {0, 3, 4}
    assert scan.blamed <= {2}, scan.summary


def test_planted_secrets_appear_in_no_output(tmp_path: Path) -> None:
    environment = {"HF_TOKEN": f"{PLANTED}-environment"}
    with running_job(
        "train", "--fault", "secrets", "--api-key", f"{PLANTED}-argument", folder=tmp_path / "job", job_id="s", env=environment
    ) as job:
        job.wait_until_hung()
        outputs = ("--html", str(tmp_path / "r.html"), "--md", str(tmp_path / "r.md"), "--save", str(tmp_path / "saved"))
        scan = run_scan(("--job", "s"), *outputs)

    assert scan.blamed == {2}, scan.summary
    written = [path.read_text() for path in (tmp_path / "r.html", tmp_path / "r.md", *(tmp_path / "saved").iterdir())]
    assert all(PLANTED not in text for text in (scan.text, scan.errors, *written))


@pytest.mark.slow
def test_target_in_namespaces_of_its_own(tmp_path: Path) -> None:
    prefix = ("unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child")
    with running_job("train", "--fault", "read-pipe", folder=tmp_path, job_id="inner", prefix=prefix) as job:
        job.wait_until_hung()
        scan = run_scan(("--job", "inner"))
        pid = job.pids[2]

    assert (scan.kind, scan.cause, scan.blamed) == ("missing-participant", "file-io", {2}), scan.summary
    assert scan.verdict["culprits"][0]["pid"] == pid
    assert any(unknown["reason"] == "skipped" for unknown in scan.report["unknowns"])


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "cause"), [("stopped", "stopped"), ("read-pipe", "file-io"), ("lock", None)])
def test_without_ptrace_the_answer_is_right_or_a_clear_unknown(fault: str, cause: str | None, tmp_path: Path) -> None:
    with running_job("train", "--fault", fault, folder=tmp_path, job_id="refused") as job:
        job.wait_until_hung()
        arguments = [sys.executable, str(REFUSE_PTRACE), "-m", "pardbg", "scan", "--job", "refused", "--json"]
        scan = Scan.of_command(arguments)

    assert scan.blamed <= {2}, scan.summary
    assert scan.exit_code in {3, 4}
    if cause is not None:
        assert (scan.kind, scan.cause, scan.blamed) == ("missing-participant", cause, {2}), scan.summary
    else:
        assert any(unknown["collector"] == "stacks" for unknown in scan.report["unknowns"]) or scan.blamed == {2}


@pytest.mark.slow
def test_another_user_hears_what_he_may_not_see(tmp_path: Path) -> None:
    interpreter = _interpreter_for_everybody()
    paths = os.pathsep.join(path for path in sys.path if path)
    with running_job("train", "--fault", "lock", folder=tmp_path, job_id="others") as job:
        job.wait_until_hung()
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", interpreter]
        scan = [*command, "-m", "pardbg", "scan", "--job", "others"]
        done = subprocess.run(
            scan, capture_output=True, text=True, check=False, timeout=60, cwd="/", env={**os.environ, "PYTHONPATH": paths}
        )

    assert done.returncode == 2, done.stderr
    assert "root" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.slow
def test_scans_change_nothing_of_a_job(tmp_path: Path) -> None:
    """A job that is scanned all the time ends as one that is left alone, with the same last loss; nothing is left stopped."""
    last_words = {}
    for name in ("scanned", "alone"):
        with running_job("train", "--fault", "none", "--steps", "200", folder=tmp_path / name, job_id=name) as job:
            job.wait_until_hung(settle_s=0)
            scans = 0
            while (state := process_state(job.launcher_pid or 0)) not in {"Z", None}:
                assert "T" not in {state, *(process_state(pid) for pid in job.pids.values())}
                if name == "scanned":
                    command = [sys.executable, "-m", "pardbg", "scan", "--job", name, "--interval", "0.1"]
                    scans += subprocess.run(command, capture_output=True, check=False).returncode in {0, 4}
                time.sleep(0.05)
            last_words[name] = re.findall(r"\[rank(\d)\] INFO step 199 loss ([\d.]+)", job.last_words())
        assert scans >= 3 or name == "alone"

    assert len(last_words["alone"]) == 1  # rank 0 logs it
    assert sorted(last_words["scanned"]) == sorted(last_words["alone"])


def _scan_unless_between(name: str) -> Scan | None:
    """None if there was no rank at that moment: between two attempts."""
    try:
        return run_scan(("--job", name))
    except AssertionError as error:
        assert "no rank of a job" in str(error)  # noqa: PT017 - what the command printed instead of a report
        return None


def _interpreter_for_everybody() -> str:
    """A Python of this version that nobody may run: ours may lie in root's home."""
    ours = f"python3.{sys.version_info.minor}"
    for candidate in (sys.executable, shutil.which(ours, path="/usr/bin:/usr/local/bin") or ""):
        child = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', '']))"  # it must start itself, too
        tried = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", candidate, "-c", child]
        if candidate and subprocess.run(tried, capture_output=True, check=False, cwd="/").returncode == 0:
            return candidate
    pytest.skip("no interpreter of this version that another user may run")
