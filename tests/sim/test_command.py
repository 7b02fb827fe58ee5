"""`pardbg sim` as a command."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from pardbg.watchdog.commands.sim import sim
from pardbg.watchdog.sim.scenario import SCENARIOS


def run(*arguments: str) -> Result:
    return CliRunner().invoke(sim, arguments)


def test_list_names_every_fault() -> None:
    result = run("--list")

    assert result.exit_code == 0
    assert all(name in result.output for name in SCENARIOS)


def test_help_ends_with_examples() -> None:
    assert run("--help").output.rstrip().endswith("pardbg analyze /tmp/job")


def test_json_answer_is_the_truth_that_was_written(tmp_path: Path) -> None:
    result = run("--fault", "desync-op", "--ranks", "4", "--out", str(tmp_path), "--json")

    assert json.loads(result.output)["truth"] == json.loads((tmp_path / "truth.json").read_text())


def test_json_format_writes_json_dumps(tmp_path: Path) -> None:
    result = run("--fault", "healthy", "--ranks", "4", "--out", str(tmp_path), "--format", "json", "--missing", "1")

    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in tmp_path.glob("nccl*")) == [f"nccl_trace_rank_{rank}.json" for rank in (0, 2, 3)]


def test_folder_with_files_is_refused_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()

    refused = run("--fault", "healthy", "--ranks", "2", "--out", str(tmp_path))
    forced = run("--fault", "healthy", "--ranks", "2", "--out", str(tmp_path), "--force")

    assert (refused.exit_code, forced.exit_code) == (2, 0)
    assert "is not empty" in refused.output


def test_unknown_fault_is_one_line_with_a_remedy(tmp_path: Path) -> None:
    result = run("--fault", "gremlins", "--out", str(tmp_path / "new"))

    assert result.exit_code == 2
    assert result.output.splitlines()[-1] == "Error: there is no fault 'gremlins': see `pardbg sim --list`"
