"""What a node sees in a year: ranks that come and go, numbers used again, programs that never end, clocks that are set."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.agent.fakes import Clock, churn, interpreter_beside, unwakeable
from tests.agent.figures import RecordProperty, note
from tests.agent.running import cpu_s, running_agent, series_of, wait_for
from tests.dashboards.history import free_port
from tests.incidents.making import hook
from tests.live.running import running_job

pytestmark = [pytest.mark.live, pytest.mark.slow]

SOON = ("--silent-after", "4", "--silent-at-most", "6")
QUIET = "pardbg_rank_quiet_seconds"
PREPARED = [sys.executable, "-m", "pardbg", "run", "--job", "churn-hung", "--"]
REUSE = Path(__file__).with_name("reuse.py")


def test_ranks_that_come_and_go_and_a_pause_of_the_agent_raise_no_alarm(
    tmp_path: Path, record_property: RecordProperty
) -> None:
    with (
        hook() as told,
        running_agent(*SOON, "--webhook", told.url) as agent,
        running_job("train", "--step-s", "0.1", folder=tmp_path, ranks=3, job_id="churn-well") as job,
    ):
        job.wait_until_hung()
        wait_for(lambda: len(series_of(agent.port, QUIET, "churn-well")) == 3, 60.0, agent.tell)
        files, used_s = _open_files(agent.pid), cpu_s(agent.pid)
        churn("churn-fake", 50, 3.0)
        used_s = cpu_s(agent.pid) - used_s
        agent.process.send_signal(signal.SIGSTOP)
        time.sleep(60.0)
        agent.process.send_signal(signal.SIGCONT)
        time.sleep(20.0)
        left = _open_files(agent.pid) - files
        seen, log = len(series_of(agent.port, QUIET, "churn-well")), agent.tell()
    heard = [body for body in told.bodies if body["job"].startswith("churn-")]
    lines = [line.partition(": ")[2] for line in log.splitlines() if " churn-well: " in line]
    note(record_property, "churn", {"files_left": left, "cpu_s": round(used_s, 1), "told": len(heard), "said": lines})
    assert heard == []
    assert seen == 3
    assert left <= 2
    assert "Traceback" not in log


def _open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - names only


def test_hung_py_spy_and_a_rank_that_nothing_can_wake_hide_no_hang(tmp_path: Path, record_property: RecordProperty) -> None:
    """Of a prepared job: of another one nothing is known without py-spy, and it stays suspect."""
    python = interpreter_beside(tmp_path / "beside", "py-spy", "exec sleep 1000")
    with (
        hook() as told,
        running_agent(*SOON, "--webhook", told.url, python=python) as agent,
        unwakeable("churn-unwakeable", 240),
        running_job("train", "--fault", "lock", folder=tmp_path, job_id="churn-hung", prefix=PREPARED) as job,
    ):
        job.wait_until_hung()
        began_s = time.monotonic()
        body = wait_for(lambda: [body for body in told.bodies if body["job"] == "churn-hung"], 120.0, agent.tell)[0]
        took_s = time.monotonic() - began_s
        left = _programs_beside(tmp_path)
        ending_s = time.monotonic()
        code = agent.end()
        ending_s = time.monotonic() - ending_s
    verdict = body["report"]["verdict"]
    others = sorted({body["job"] for body in told.bodies if body["job"].startswith("churn-")})
    figures = {"told_after_s": round(took_s, 1), "ending_s": round(ending_s, 1), "py_spies_left": left, "told_of": others}
    note(record_property, "hung-py-spy", {**figures, "claim": verdict["claim"]})
    assert code == 0
    assert [culprit["rank"] for culprit in verdict["culprits"]] == [2]
    assert left == 0


def _programs_beside(folder: Path) -> int:
    """How many hung py-spies run."""
    mark, count = os.fsencode(folder / "beside"), 0
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            is_one = mark in path.read_bytes() and b"sleep" in (path.parent / "cmdline").read_bytes()
        except OSError:
            continue
        count += is_one
    return count


def test_number_that_is_used_again_is_another_rank(tmp_path: Path, record_property: RecordProperty) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs a pid namespace")
    port, told_jobs = free_port(), set()
    with hook() as told:
        command = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, str(REUSE)]
        agent = ["--state", str(tmp_path / "state"), "--socket", "/tmp/pdbg-reuse.sock", "--listen", f"127.0.0.1:{port}"]  # noqa: S108
        with subprocess.Popen(
            [*command, *agent, *SOON, "--webhook", told.url], stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
        ) as driver:
            assert driver.stdout is not None
            lived = [json.loads(line) for line in driver.stdout]
        told_jobs = {body["job"] for body in told.bodies}
    seen = [life["seen"] for life in lived]
    pids = {life["pid"] for life in lived}
    note(
        record_property, "pid-reuse", {"lives": len(lived), "pids": len(pids), "seen_right": sum(seen), "told": len(told_jobs)}
    )
    assert driver.returncode == 0
    assert len(pids) == 1
    assert all(seen)
    assert told_jobs == set()


def test_clock_that_is_set_ends_no_incident_and_opens_none(tmp_path: Path, record_property: RecordProperty) -> None:
    clock = Clock(tmp_path)
    with (
        hook() as told,
        running_agent(*SOON, "--webhook", told.url, env=clock.variables) as agent,
        running_job("train", "--step-s", "0.1", folder=tmp_path / "well", ranks=3, job_id="clock-well") as well,
        running_job("train", "--fault", "lock", folder=tmp_path / "hung", job_id="clock-hung") as hung,
    ):
        well.wait_until_hung()
        hung.wait_until_hung()
        wait_for(lambda: agent.incidents("clock-hung"), 60.0, agent.tell)
        for hours in (2, -3, 0):
            clock.add(hours * 3600)
            time.sleep(15.0)
        found, log = agent.incidents("clock-hung"), agent.tell()
    events = [(body["job"], body["event"]) for body in told.bodies if body["job"].startswith("clock-")]
    stamps = sorted({line[11:13] for line in log.splitlines() if line.startswith("20")})
    note(record_property, "clock", {"events": events, "hours_in_log": stamps, "states": [one["state"] for one in found]})
    assert [one["state"] for one in found] == ["open"]
    assert events[:1] == [("clock-hung", "opened")]
    assert {event for _, event in events} <= {"opened", "updated", "ended"}
    assert [event for _, event in events].count("opened") == 1
