"""A real agent, a real job, and those who are told: the hang is found before anyone asks."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.agent.running import running_agent, running_alerting, wait_for
from tests.incidents.making import hook
from tests.live.running import process_state, running_job
from tests.live.scanning import Scan

from pardbg.watchdog.outputs.validation import validate_report

pytestmark = pytest.mark.live

SOON = ("--silent-after", "4", "--silent-at-most", "6")
CLAIM = "rank 2 has not joined all_reduce"


def test_hang_becomes_one_incident_one_alert_and_ends_with_the_job(tmp_path: Path) -> None:
    """From the hang to the webhook by both ways; SIGKILL of the agent in between; the end of the job. Others may hang here."""
    with hook() as own, hook() as alerts, running_agent(*SOON, "--webhook", own.url) as agent:
        with (
            running_alerting([f"127.0.0.1:{agent.port}"], alerts.url, every="1s", wait="1s"),
            running_job("train", "--fault", "lock", folder=tmp_path, job_id="hangs") as job,
        ):
            job.wait_until_hung()
            pids = job.pids
            told = wait_for(lambda: [body for body in own.bodies if body["job"] == "hangs"], 60.0, agent.tell)[0]
            firing = wait_for(lambda: _alerts_of("hangs", alerts.bodies), 30.0, "the alert")
            first = agent.incidents("hangs")
            agent.end(signal.SIGKILL)
            agent.start()
            time.sleep(3.0)
            second = agent.incidents("hangs")
            exported = _export(agent.state, first[0]["id"], tmp_path / "exported")
            assert job.pids == pids
            assert {process_state(pid) for pid in pids.values()} <= {"S", "R"}
        ended = wait_for(lambda: [one for one in agent.incidents("hangs") if one["state"] == "ended"], 20.0, agent.tell)

    assert told["event"] == "opened"
    assert CLAIM in told["report"]["verdict"]["claim"]
    assert [alert["labels"]["alertname"] for alert in firing] == ["PardbgJobHung"]
    assert CLAIM in firing[0]["annotations"]["description"]
    assert len(first) == len(second) == len(ended) == 1
    assert first[0]["id"] == second[0]["id"] == ended[0]["id"]
    assert (first[0]["state"], second[0]["state"]) == ("open", "open")
    validate_report(first[0]["report"])
    assert (exported.exit_code, exported.blamed) == (3, {2})


def _alerts_of(job: str, bodies: list[Any]) -> list[Any]:
    """The alerts that Alertmanager has told of a job."""
    return [alert for body in list(bodies) for alert in body["alerts"] if alert["labels"].get("job_id") == job]


def _export(state: Path, incident: str, folder: Path) -> Scan:
    """The verdict again, from the evidence that was kept."""
    command = [sys.executable, "-m", "pardbg", "incidents", "export", incident, str(folder), "--state", str(state)]
    subprocess.run(command, check=True, capture_output=True)
    return Scan.of_files(folder)


@pytest.mark.slow
def test_rank_that_pauses_and_goes_on_raises_no_alarm(tmp_path: Path) -> None:
    """200 MB at 10 MB/s: suspect, scanned, and let alone."""
    with hook() as own, running_agent(*SOON, "--webhook", own.url) as agent:
        with running_job("train", "--fault", "slow-read", folder=tmp_path, job_id="slow") as job:
            job.wait_until_hung()
            wait_for(lambda: re.search(r"slow: (slow|healthy): ", agent.tell()), 60.0, agent.tell)
            time.sleep(8.0)
        found = agent.incidents("slow")

    assert found == []
    assert [body for body in own.bodies if body["job"] == "slow"] == []
