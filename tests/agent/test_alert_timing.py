"""From a hang to the pager, with an agent as it comes and the intervals that sites have: scrape and evaluation 15 s."""

import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.agent.figures import RecordProperty, note
from tests.agent.running import running_agent, running_alerting, wait_for
from tests.incidents.making import Hook, hook
from tests.live.running import running_job

pytestmark = [pytest.mark.live, pytest.mark.slow]

MOST_S = 90.0


@pytest.mark.parametrize(
    ("fault", "claim"),
    [
        ("lock", "rank 2 has not joined all_reduce"),
        ("checkpoint", "rank 2 has not joined barrier"),
        ("stopped", "rank 2 has not joined all_reduce"),
        ("busy-loop", "rank 2 has not joined all_reduce"),
    ],
)
def test_hang_is_told_by_alertmanager_within_90_s(
    fault: str, claim: str, tmp_path: Path, record_property: RecordProperty
) -> None:
    name = f"timing-{fault}"
    with (
        hook() as own,
        hook() as alerts,
        running_agent("--webhook", own.url) as agent,
        running_alerting([f"127.0.0.1:{agent.port}"], alerts.url, every="15s", wait="5s"),
        running_job("train", "--fault", fault, "--step-s", "0.1", folder=tmp_path, job_id=name) as job,
    ):
        job.wait_until_hung(settle_s=0.0)
        began_s = job.ready_file.stat().st_mtime
        told = wait_for(lambda: [body for body in own.bodies if body["job"] == name], MOST_S, agent.tell)[0]
        own_s = time.time() - began_s
        firing = wait_for(lambda: _firing(name, alerts), 2 * MOST_S, "the alert")[0]
        alert_s, log = time.time() - began_s, agent.tell()
    figures = {
        "scans_at_s": [round(at_s - began_s, 1) for at_s in _scans(name, log)],
        "webhook_s": round(own_s, 1),
        "alert_s": round(alert_s, 1),
        "scan_s": round(told["report"]["took_s"], 1),
        "said": firing["annotations"]["description"],
    }
    note(record_property, name, figures)
    assert claim in told["report"]["verdict"]["claim"]
    assert claim in firing["annotations"]["description"]
    assert alert_s < MOST_S, figures


def _scans(job: str, log: str) -> list[float]:
    """When the agent began to scan a job, unix time in seconds."""
    lines = [line for line in log.splitlines() if f" {job}: ranks" in line]
    return [datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f").astimezone().timestamp() for line in lines]


def _firing(job: str, told: Hook) -> list[Any]:
    """The alert of a hang that Alertmanager has told."""
    alerts = [alert for body in list(told.bodies) for alert in body["alerts"] if alert["status"] == "firing"]
    return [one for one in alerts if one["labels"].get("job_id") == job and one["labels"]["alertname"] == "PardbgJobHung"]
