"""From a drop-rate spike to Alertmanager: a rank that publishes as the probe does, a real agent and a real Prometheus."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.figures import RecordProperty, note
from tests.agent.running import running_agent, running_alerting, series_of, wait_for
from tests.dashboards.history import free_port
from tests.incidents.making import Hook, hook

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("routing_rank.py")
LOOK_S = 1.0
WAIT_S = 1.0
"""How long Alertmanager waits for others of a group."""
SETTLED_STEPS = 100
JOB = "routes"


PROGRAM_OF_TRAINING, SCENARIOS = "tests.moe.jobs.train_moe", ("--scenarios", "healthy", "capacity-cut")
"""Its layer 2 has its capacity cut in the end."""
TRAINING_S = 150.0


@contextlib.contextmanager
def training(work: Path) -> Iterator[None]:
    """A real MoE transformer on two ranks, with nothing added but `pardbg run`."""
    with contextlib.ExitStack() as closing:
        port = str(free_port())
        for rank in range(2):
            own = {
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": "2",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": port,
            }
            command = [sys.executable, "-m", "pardbg", "run", "--job", JOB, "--"]
            command += [sys.executable, "-m", PROGRAM_OF_TRAINING, str(work), *SCENARIOS]
            started = subprocess.Popen(command, env={**os.environ, **own, "OMP_NUM_THREADS": "1"}, cwd=ROOT)
            closing.callback(started.wait)
            closing.callback(started.kill)
        yield


@contextlib.contextmanager
def publishing(work: Path) -> Iterator[int]:
    """A rank of one; its pid."""
    variables = {
        "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29873",
        "PARDBG_JOB": JOB, "PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    with subprocess.Popen([sys.executable, str(PROGRAM), str(work)], env=variables) as rank:
        try:
            yield rank.pid
        finally:
            rank.kill()
    for folder in Path(f"/dev/shm/pardbg-{os.getuid()}").glob(f"{rank.pid}-*"):  # noqa: S108 - the probe's place
        shutil.rmtree(folder)


@pytest.mark.parametrize("every_s", [4.0, pytest.param(15.0, marks=pytest.mark.slow)])
def test_drop_spike_reaches_alertmanager_within_two_scrapes(
    every_s: float, tmp_path: Path, record_property: RecordProperty
) -> None:
    """Of the third step that drops as much. The agent looks once a second, which comes on top, and Alertmanager's own wait."""
    with (
        hook() as told,
        publishing(tmp_path),
        running_agent("--no-gpu") as agent,
        running_alerting([f"127.0.0.1:{agent.port}"], told.url, every=f"{every_s:g}s", wait=f"{WAIT_S:g}s"),
    ):
        began = wait_for(lambda: _figures(agent.port, "step"), 30.0, agent.tell)["2"]
        wait_for(lambda: _figures(agent.port, "step").get("2", 0.0) > began + SETTLED_STEPS, 30.0, agent.tell)
        before = _figures(agent.port, "illness")
        assert _alerts(told) == []
        (tmp_path / "spike").touch()
        (alert,) = wait_for(lambda: _alerts(told), 3 * every_s + 10.0, agent.tell, poll_s=0.05)
        took_s = time.time() - float((tmp_path / "held").read_text())
        shown = _figures(agent.port, "drop_ratio")
    note(record_property, f"drop-spike-{every_s:g}", {"alert_s": round(took_s, 1), "said": alert["annotations"]["description"]})
    assert set(before.values()) == {0.0}
    assert alert["labels"]["alertname"] == "PardbgMoeDropRateSpike"
    assert alert["annotations"]["description"].startswith("layer 2 since step ")
    assert {layer: value > 0.2 for layer, value in shown.items()} == {"0": False, "1": False, "2": True, "3": False}
    assert took_s <= 2 * every_s + LOOK_S + WAIT_S


@pytest.mark.slow
def test_capacity_cut_in_a_real_training_reaches_alertmanager_within_two_scrapes(
    tmp_path: Path, record_property: RecordProperty
) -> None:
    """Of the moment at which the agent is sure."""
    every_s = 5.0
    with (
        hook() as told,
        running_agent("--no-gpu") as agent,
        running_alerting([f"127.0.0.1:{agent.port}"], told.url, every=f"{every_s:g}s", wait=f"{WAIT_S:g}s"),
        training(tmp_path),
    ):
        wait_for(lambda: any(_figures(agent.port, "illness").values()), TRAINING_S, agent.tell, poll_s=0.1)
        sure_s = time.time()
        assert _alerts(told) == []
        (alert,) = wait_for(lambda: _alerts(told), 3 * every_s + 10.0, agent.tell, poll_s=0.05)
        took_s = time.time() - sure_s
        ranks = series_of(agent.port, "pardbg_moe_rank_step", JOB)
    note(record_property, "capacity-cut", {"alert_s": round(took_s, 1), "said": alert["annotations"]["description"]})
    assert alert["labels"]["alertname"] == "PardbgMoeDropRateSpike"
    assert alert["annotations"]["description"].startswith("layer 2 since step ")
    assert len(ranks) == 2
    assert took_s <= 2 * every_s + WAIT_S


def _figures(port: int, name: str) -> dict[str, float]:
    """A figure of each layer, as the agent's page has it; the highest of several."""
    found: dict[str, float] = {}
    for line in series_of(port, f"pardbg_moe_{name}", JOB):
        layer = line.split('layer="')[1].split('"')[0]
        found[layer] = max(found.get(layer, 0.0), float(line.rsplit(" ", 1)[1]))
    return found


def _alerts(told: Hook) -> list[Any]:
    """What Alertmanager has told of our job."""
    return [alert for body in list(told.bodies) for alert in body["alerts"] if alert["labels"].get("job_id") == JOB]
