"""Jobs that are well, though they pause, start anew or end: nobody is told, by neither way. Time is compressed: 4 s, not 30."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.agent.figures import RecordProperty, note
from tests.agent.running import running_agent, running_alerting
from tests.dashboards.history import free_port
from tests.incidents.making import hook
from tests.live.running import process_state, running_job

pytestmark = [pytest.mark.live, pytest.mark.slow]

SOON = ("--silent-after", "4", "--silent-at-most", "6")
GONE_S = 12.0
"""How long the agent goes on after a job has ended."""


@dataclass(frozen=True)
class Life:
    """A job that is well, and for how long it is looked at."""

    name: str
    arguments: tuple[str, ...] = ()
    program: str = "train"
    for_s: float = 75.0
    launcher: tuple[str, ...] = ()
    is_prepared: bool = False

    def run(self, folder: Path, job_id: str, launcher: tuple[str, ...] = ()) -> list[str]:
        """Lives it, and says which states the ranks were seen in at the end."""
        prefix = [sys.executable, "-m", "pardbg", "run", "--job", job_id, "--"] if self.is_prepared else []
        with running_job(
            self.program, *self.arguments, folder=folder, job_id=job_id,
            launcher_args=(*self.launcher, *launcher), prefix=prefix,
        ) as job:  # fmt: skip
            until_s = time.monotonic() + self.for_s
            job.wait_until_hung()
            while time.monotonic() < until_s and not job._has_ended():
                time.sleep(0.5)
            return [process_state(pid) or "gone" for pid in job.pids.values()]


LIVES = [
    Life("healthy"),
    Life("slow", ("--step-s", "2.5", "--ready-step", "2")),
    Life("very-slow", ("--step-s", "8", "--ready-step", "1"), for_s=100.0),
    Life("straggler", ("--step-s", "8", "--ready-step", "1", "--uneven"), for_s=100.0),
    Life("reads", ("--fault", "slow-read")),
    Life("saves", ("--saves",), "pausing"),
    Life(
        "fails", ("--fault", "fails-often", "--for-s", "8", "--ready-step", "2"),
        launcher=("--max-restarts=3", "--monitor-interval=0.5"), for_s=110.0,
    ),
    Life("prepared", is_prepared=True),
    Life("evaluates", program="pausing"),
    Life("prepared-saves", ("--saves",), "pausing", is_prepared=True),
    Life("prepared-evaluates", program="pausing", is_prepared=True),
]  # fmt: skip


def alarms(life: Callable[[Path, str], Any], name: str, folder: Path, record_property: RecordProperty) -> dict[str, Any]:
    """What is told of a job while it lives and after; the figures."""
    with (
        hook() as own,
        hook() as alerts,
        running_agent(*SOON, "--webhook", own.url) as agent,
        running_alerting([f"127.0.0.1:{agent.port}"], alerts.url, every="1s", wait="1s"),
    ):
        began_s = time.monotonic()
        states = life(folder, name)
        lasted_s = time.monotonic() - began_s
        time.sleep(GONE_S)
        by_agent = [body["event"] for body in own.bodies if body["job"] == name]
        fired = [one for body in list(alerts.bodies) for one in body["alerts"] if one["labels"].get("job_id") == name]
        kept, log = agent.incidents(name), agent.tell()
    lines = [line for line in log.splitlines() if f" {name}: " in line]
    figures = {
        "lasted_s": round(lasted_s), "scans": sum(line.endswith("scanning") for line in lines), "webhook": len(by_agent),
        "alerts": len(fired), "incidents": len(kept), "states": "".join(states),
        "said": [line.split(f"{name}: ")[1][:150] for line in lines if not line.endswith("scanning")],
    }  # fmt: skip
    note(record_property, name, figures)
    return {"told": by_agent, "fired": fired, "kept": [one["id"] for one in kept], "log": lines}


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.name)
def test_job_that_is_well_raises_no_alarm(life: Life, tmp_path: Path, record_property: RecordProperty) -> None:
    found = alarms(life.run, f"well-{life.name}", tmp_path, record_property)
    assert (found["told"], found["fired"], found["kept"]) == ([], [], []), found["log"]


def test_job_that_ends_and_the_next_one_at_its_port_raise_no_alarm(tmp_path: Path, record_property: RecordProperty) -> None:
    short = Life("twice", ("--steps", "300"))
    port = ("--rdzv-endpoint", f"localhost:{free_port()}")

    def both(folder: Path, name: str) -> list[str]:
        return [state for part in ("a", "b") for state in short.run(folder / part, name, port)]

    found = alarms(both, "well-twice", tmp_path, record_property)
    assert (found["told"], found["fired"], found["kept"]) == ([], [], []), found["log"]
