"""`pardbg incidents`."""

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from pardbg.watchdog.commands.main import main
from pardbg.watchdog.incidents.store import FILE_NAME, IncidentStore
from pardbg.watchdog.outputs.incidents_text import describe_incident, list_incidents
from tests.incidents.making import ended, incident

PARDBG = str(Path(sys.executable).with_name("pardbg"))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """In this process: a start of Python takes longer than all the rest."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors), pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return subprocess.CompletedProcess(arguments, int(ended.value.code or 0), output.getvalue(), errors.getvalue())


def run_alone(*arguments: str) -> str:
    return subprocess.run([PARDBG, *arguments], capture_output=True, text=True, check=False, timeout=60).stdout


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three incidents; the evidence of the second is that of a simulated job."""
    folder = tmp_path_factory.mktemp("state")
    store = IncidentStore(folder)
    for one in (incident(1), ended(incident(2, of="device_stuck")), incident(3, of="hostile")):
        store.save(one)
    store.close()
    evidence = folder / "evidence" / incident(2).id
    run_alone("sim", "--ranks", "16", "--fault", "missing-participant", "--out", str(evidence))
    return folder


def test_table_fits_80_columns_and_cuts_nothing(state: Path) -> None:
    shown = run("incidents", "list", "--state", str(state))
    assert shown.returncode == 0
    lines = shown.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["INCIDENT", "STATE", "LASTED", "JOB", "WHAT"]
    assert lines[1].startswith("20261130-000001-4f2a  open       30 min 0   48213         missing-participant")
    assert not any(ord(character) < 32 for line in lines for character in line)
    long = replace(incident(1), job="/".join(["llama-very-long-name"] * 3))
    rows = list(list_incidents([long]))[1:]
    assert "".join(row[44:56].strip() for row in rows).startswith(long.job.replace(" ", ""))
    assert list(list_incidents([])) == []


def test_list_as_json_has_whole_reports(state: Path) -> None:
    whole = json.loads(run("incidents", "list", "--json", "--state", str(state)).stdout)
    assert [one["state"] for one in whole["incidents"]] == ["open", "ended", "open"]
    assert whole["incidents"][0]["report"]["schema"] == "pardbg.report/1"


def test_show_tells_what_became_of_it_and_the_report(state: Path) -> None:
    shown = run("incidents", "show", incident(2).id[:15], "--state", str(state)).stdout
    assert "state     ended: the job has ended" in shown
    assert f"evidence  {state}/evidence/{incident(2).id}" in shown
    assert "it fell off the bus" in shown
    assert json.loads(run("incidents", "show", incident(2).id, "--json", "--state", str(state)).stdout)["state"] == "ended"
    assert "none is kept" in describe_incident(incident(1), None)


def test_exported_evidence_can_be_analysed(state: Path, tmp_path: Path) -> None:
    out = run("incidents", "export", incident(2).id, str(tmp_path / "hang"), "--state", str(state))
    assert out.returncode == 0
    assert f"pardbg analyze {tmp_path / 'hang'}" in out.stdout
    report = json.loads(run_alone("analyze", str(tmp_path / "hang"), "--json"))
    assert report["verdict"]["kind"] == "missing-participant"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "2026"], "'2026' may be 20261130-000001-4f2a, 20261130-000002-4f2a, 20261130-000003-4f2a; write more"),
        (["show", "1999"], "incident '1999' is not kept in"),
        (["export", "20261130-000001", "/tmp/never"], "no evidence of 20261130-000001-4f2a is kept any more"),  # noqa: S108
        (["export", "20261130-000002", "."], "is not an empty folder"),
    ],
)
def test_wrong_use_is_one_line_and_exit_2(state: Path, arguments: list[str], words: str) -> None:
    failed = run("incidents", *arguments, "--state", str(state))
    assert (failed.returncode, failed.stdout) == (2, "")
    assert words in failed.stderr
    assert len(failed.stderr.splitlines()) == 1


def test_folder_without_an_agent_or_with_something_else_is_one_line(tmp_path: Path) -> None:
    failed = run("incidents", "list", "--state", str(tmp_path))
    assert failed.returncode == 2
    assert f"no agent has kept incidents in {tmp_path}; name its state folder with --state" in failed.stderr
    (tmp_path / FILE_NAME).write_bytes(b"something else" * 1000)
    failed = run("incidents", "list", "--state", str(tmp_path))
    assert failed.returncode == 1
    assert "not a database" in failed.stderr
    assert len(failed.stderr.splitlines()) == 1


def test_machine_where_no_agent_has_run_has_no_incidents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pardbg.watchdog.agent.settings.usual_state_folder", lambda: tmp_path / "none")
    listed, as_json = run("incidents", "list"), run("incidents", "list", "--json")

    assert (listed.returncode, as_json.returncode) == (0, 0)
    assert "No agent has run here" in listed.stdout
    assert json.loads(as_json.stdout)["incidents"] == []
