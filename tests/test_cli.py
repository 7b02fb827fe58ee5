"""The command line: quick help, one-line errors, exit codes, nothing else on stdout."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pardbg.watchdog.commands.main import COMMANDS

PARDBG = str(Path(sys.executable).with_name("pardbg"))
HELP_BUDGET_S = 0.3


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PARDBG, *arguments], capture_output=True, text=True, check=False, timeout=60)


def test_help_comes_at_once() -> None:
    """The best of several: the machine is shared."""
    times = []
    for _ in range(5):
        started = time.perf_counter()
        assert run("--help").returncode == 0
        times.append(time.perf_counter() - started)
    assert min(times) < HELP_BUDGET_S


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_ends_with_an_example(command: str) -> None:
    shown = run(command, "--help")
    assert shown.returncode == 0
    assert f"  pardbg {command}" in shown.stdout.split("Example")[-1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["analyze"], "Missing argument 'PATH...'"),
        (["analyze", "/no/such/folder"], "/no/such/folder"),
        (["scan", "--job", "a", "--job", "b"], "--job is given 2 times"),
        (["analize"], "No such command 'analize'"),
        (["sim", "--ranks", "16", "--fault", "no-such", "--out", "unused"], "no-such"),
        (["demo", "--fault", "no-such"], "no-such"),
    ],
)
def test_wrong_usage_is_one_clear_line_and_exit_2(arguments: list[str], words: str) -> None:
    failed = run(*arguments)
    assert failed.returncode == 2
    assert failed.stdout == ""
    assert words in failed.stderr
    assert "Traceback" not in failed.stderr


def test_folder_without_evidence_is_wrong_usage(tmp_path: Path) -> None:
    failed = run("analyze", str(tmp_path))
    assert failed.returncode == 2
    assert len(failed.stderr.strip().splitlines()) == 1
    assert str(tmp_path) in failed.stderr


def test_folder_of_other_files_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# nothing")
    failed = run("analyze", str(tmp_path))
    assert failed.returncode == 2
    assert len(failed.stderr.strip().splitlines()) == 1
    assert "notes.md" in failed.stderr


def test_one_bad_file_loses_nothing_of_the_others(tmp_path: Path) -> None:
    assert run("sim", "--ranks", "16", "--fault", "missing-participant", "--out", str(tmp_path)).returncode == 0
    truth = json.loads((tmp_path / "truth.json").read_text())
    (tmp_path / "nccl_trace_rank_11").write_bytes(b"\x80\x02c__builtin__\nexec\n.")
    (tmp_path / "nccl_trace_rank_12").write_bytes(b"")

    found = run("analyze", str(tmp_path), "--json")
    report = json.loads(found.stdout)

    assert [subject["rank"] for subject in report["verdict"]["culprits"]] == truth["culprits"]
    unknowns = {unknown["rank"]: unknown for unknown in report["unknowns"]}
    assert unknowns[11]["reason"] == "unreadable"
    assert "exec" in unknowns[11]["detail"]
    assert unknowns[12]["reason"] == "empty"


def test_report_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    run("sim", "--ranks", "16", "--fault", "healthy", "--out", str(tmp_path / "job"))
    failed = run("analyze", str(tmp_path / "job"), "--html", str(tmp_path / "no" / "such" / "page.html"))
    assert failed.returncode == 2
    assert "cannot write" in failed.stderr


def test_interrupt_ends_with_130_and_leaves_no_child(tmp_path: Path) -> None:
    run("sim", "--ranks", "64", "--entries", "2000", "--fault", "healthy", "--out", str(tmp_path))
    with subprocess.Popen(
        [PARDBG, "analyze", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        time.sleep(0.35)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode in {130, 0}  # 0: it was quicker than the signal
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and any(Path(f"/proc/{child}").exists() for child in children):
        time.sleep(0.05)
    assert [child for child in children if Path(f"/proc/{child}").exists()] == []


def simulated(folder: Path, *options: str) -> Path:
    assert run("sim", "--ranks", "16", "--fault", "missing-participant", "--out", str(folder), *options).returncode == 0
    return folder


def test_world_size_that_no_job_has_is_not_believed(tmp_path: Path) -> None:
    folder = simulated(tmp_path / "job")
    (folder / "job.json").write_text('{"job": "j", "world_size": 1000000000000, "ranks": []}')
    report = json.loads(run("analyze", str(folder), "--json").stdout)
    assert report["job"]["world_size"] == 16
    assert any("1000000000000" in unknown["detail"] for unknown in report["unknowns"])


def test_large_world_of_which_little_was_seen_is_told_in_few_words(tmp_path: Path) -> None:
    folder = simulated(tmp_path / "job")
    (folder / "job.json").write_text('{"job": "j", "world_size": 100000, "ranks": []}')
    report = json.loads(run("analyze", str(folder), "--json").stdout)
    assert len(report["unknowns"]) < 5000
    assert report["coverage"]["ranks_expected"] == 100000


def test_two_jobs_in_one_folder_are_refused_with_a_command_each(tmp_path: Path) -> None:
    simulated(tmp_path / "a")
    simulated(tmp_path / "b", "--seed", "1")
    refused = run("analyze", str(tmp_path))
    assert refused.returncode == 2
    assert f"pardbg analyze {tmp_path / 'a'} or pardbg analyze {tmp_path / 'b'}" in refused.stderr


def test_dump_whose_name_has_no_rank_is_named(tmp_path: Path) -> None:
    folder = simulated(tmp_path / "job")
    (folder / "nccl_trace_rank_3").rename(folder / "leftover.bin")
    report = json.loads(run("analyze", str(folder), "--json").stdout)
    assert any("leftover.bin" in unknown["detail"] for unknown in report["unknowns"])


def test_empty_path_is_not_the_current_folder() -> None:
    assert run("analyze", "").returncode == 2


def test_full_disk_is_one_line_and_exit_1(tmp_path: Path) -> None:
    folder = simulated(tmp_path / "job")
    with Path("/dev/full").open("w") as full:
        failed = subprocess.run([PARDBG, "analyze", str(folder)], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert failed.returncode == 1
    assert "No space left" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_hostile_path_does_not_reach_the_terminal_raw() -> None:
    failed = run("analyze", "/nonexistent\n\x1b[31mRED")
    assert "\x1b" not in failed.stderr
    assert len(failed.stderr.strip().splitlines()) == 1
