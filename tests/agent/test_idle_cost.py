"""What an agent costs on a node where all is well: 8 ranks, 5 minutes, Prometheus scrapes it every 15 s."""

import sys
import time
from pathlib import Path

import pytest
from tests.agent.figures import RecordProperty, note
from tests.agent.running import cpu_s, resident_bytes, running_agent, running_alerting, series_of, wait_for
from tests.incidents.making import hook
from tests.live.running import running_job

pytestmark = [pytest.mark.live, pytest.mark.slow]

RANKS = 8
FOR_S = 300.0
QUIET = "pardbg_rank_quiet_seconds"
MOST_CORE = 0.01
MOST_BYTES = 80 << 20


@pytest.mark.parametrize("kind", ["prepared", "unprepared"])
def test_agent_of_a_healthy_node_takes_a_hundredth_of_a_core_and_80_mb(
    kind: str, tmp_path: Path, record_property: RecordProperty
) -> None:
    wrapper = [sys.executable, "-m", "pardbg", "run", "--job", "idle", "--"] if kind == "prepared" else []
    job = running_job("train", "--step-s", "0.08", folder=tmp_path, ranks=RANKS, job_id="idle", prefix=wrapper)
    with hook() as told, running_agent("--webhook", told.url) as agent, job as running:
        running.wait_until_hung()  # it trains
        wait_for(lambda: len(series_of(agent.port, QUIET, "idle")) == RANKS, 90.0, agent.tell)
        with running_alerting([f"127.0.0.1:{agent.port}"], told.url, every="15s", wait="5s"):
            time.sleep(20.0)  # the start is not what it costs
            before_s, began_s, most_pss, most_rss = cpu_s(agent.pid), time.monotonic(), 0, 0
            while time.monotonic() - began_s < FOR_S:
                time.sleep(1.0)
                most_pss, most_rss = max(most_pss, agent.memory_bytes()), max(most_rss, resident_bytes(agent.pid))
            used_s, took_s = cpu_s(agent.pid) - before_s, time.monotonic() - began_s
    figures = {
        "core_percent": round(100 * used_s / took_s, 3), "pss_mib": most_pss >> 20, "rss_mib": most_rss >> 20,
        "load": Path("/proc/loadavg").read_text().split()[0],
    }  # fmt: skip
    note(record_property, f"idle-{kind}", figures)
    assert told.bodies == []
    assert used_s <= MOST_CORE * took_s, figures
    assert most_pss <= MOST_BYTES, figures
