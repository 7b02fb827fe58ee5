"""`pardbg incidents`."""

import contextlib
import fcntl
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from pardbg.watchdog.commands.main import main
from pardbg.watchdog.incidents import reading
from pardbg.watchdog.incidents.clock import from_rfc3339
from pardbg.watchdog.incidents.lock import LOCK_NAME, is_held
from pardbg.watchdog.incidents.store import FILE_NAME, IncidentStore
from pardbg.watchdog.outputs.incidents_text import describe_incident, list_incidents
from pardbg.watchdog.outputs.lasting import began_text, spell_lasted
from tests.incidents.making import ended, incident

NOON_S = from_rfc3339("2026-11-30T12:00:00Z")
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
    assert lines[1].startswith("20261130-000001-4f2a  open  ")
    rows = list(list_incidents([ended(incident(2))], NOON_S))
    lasted = spell_lasted(ended(incident(2)), NOON_S)
    assert rows[1].startswith(f"20261130-000002-4f2a  ended      {lasted:12}  48213         missing-participant")
    assert not any(ord(character) < 32 for line in lines for character in line)
    long = replace(incident(1), job="/".join(["llama-very-long-name"] * 3))
    rows = list(list_incidents([long], NOON_S))[1:]
    assert "".join(row[47:59].strip() for row in rows).startswith(long.job.replace(" ", ""))
    assert list(list_incidents([], NOON_S)) == []


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
    assert "none is kept" in describe_incident(incident(1), [], NOON_S)
    assert "  newest    /b\n" in describe_incident(incident(1), ["/a", "/b"], NOON_S)


def test_hang_lasts_from_its_own_beginning_until_now_or_its_end() -> None:
    verdict = incident(1).report.verdict
    assert verdict is not None
    report = replace(incident(1).report, decided_at="2026-11-30T11:00:10.000Z", verdict=replace(verdict, since_s=20.0))
    one = replace(incident(1), opened_at="2026-11-30T11:00:11.000Z", updated_at="2026-11-30T11:13:08.000Z", report=report)
    assert began_text(one) == "2026-11-30T10:59:50.000Z"
    assert spell_lasted(ended(one), NOON_S) == "13 min 18 s"
    assert spell_lasted(one, NOON_S) == "60 min 10 s"
    assert max(len(spell_lasted(one, NOON_S + second)) for second in range(0, 5_000_000, 997)) <= 12
    assert "began     2026-11-30T10:59:50.000Z; it lasted 13 min 18 s" in describe_incident(ended(one), [], NOON_S)
    vague = replace(one, report=replace(report, verdict=None))
    assert (began_text(vague), began_text(replace(one, report=replace(report, decided_at="?")))) == (one.opened_at,) * 2


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
    assert "not a database; start the agent: it moves it aside" in failed.stderr
    assert len(failed.stderr.splitlines()) == 1


def test_machine_where_no_agent_has_run_has_no_incidents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pardbg.watchdog.agent.settings.usual_state_folder", lambda: tmp_path / "none")
    listed, as_json = run("incidents", "list"), run("incidents", "list", "--json")

    assert (listed.returncode, as_json.returncode) == (0, 0)
    assert "No agent has run here" in listed.stdout
    assert json.loads(as_json.stdout)["incidents"] == []


def test_list_says_that_an_agent_on_a_full_disk_may_know_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    IncidentStore(tmp_path).close()
    monkeypatch.setattr(reading, "_LEAST_FREE_BYTES", 1 << 60)
    with (tmp_path / LOCK_NAME).open("w") as lock:
        alone = run("incidents", "list", "--state", str(tmp_path))
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert is_held(tmp_path)
        beside = run("incidents", "list", "--state", str(tmp_path))
        (tmp_path / FILE_NAME).write_bytes(b"")  # there was no room for more
        blank = run("incidents", "list", "--state", str(tmp_path))
    assert (alone.stdout, alone.stderr) == ("The agent has found no hang.\n", "")
    assert beside.stdout == "No incident is on the disk.\n"
    assert beside.stderr == "pardbg: the agent of this machine may hold more in memory: its disk is full\n"
    assert (blank.returncode, blank.stdout) == (2, "")
    assert f"the agent has written nothing into {tmp_path} yet; its log" in blank.stderr
    assert not is_held(tmp_path)
    assert f"no agent has kept incidents in {tmp_path}" in run("incidents", "list", "--state", str(tmp_path)).stderr
