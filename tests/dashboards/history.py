"""Half an hour of two agents, as a Prometheus would have it: two jobs train, then one of them hangs.

What agents render is written by `promtool tsdb create-blocks-from openmetrics`, and served by a real Prometheus.
"""

import contextlib
import math
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from pardbg.dashboards.scene import CardShown
from pardbg.watchdog.agent.metrics import metrics_text
from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.model.watched import AgentSnapshot, WatchedRank
from pardbg.watchdog.model.watched_layer import LayerIllness, WatchedLayer
from tests.dashboards.snapshots import card, healthy_rank, hung_job, job, layer, snapshot

MINUTES = 30
HUNG_S = 240.0
SCRAPE_S = 15
STUCK = 2
_NAME = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
_START_S = 15.0


def needs(program: str) -> str:
    """Where a program is; the test is skipped if it is not there."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not there: apt-get install --no-install-recommends prometheus")
    return found


def rank_at(number: int, left_s: float, step_s: float = 2.0) -> WatchedRank:
    """A rank ``left_s`` seconds before the end."""
    trained_s = MINUTES * 60.0 - max(left_s, HUNG_S)
    quiet_s = HUNG_S - left_s if left_s < HUNG_S else 1.0 + math.sin(left_s / 40 + number)
    saves = 600 < left_s < 660
    return msgspec.structs.replace(
        healthy_rank(number),
        quiet_s=quiet_s,
        limit_s=120.0 if saves else 30.0,
        step=int(trained_s / step_s) - (number == STUCK),
        step_s=step_s + 0.1 * math.sin(left_s / 60 + number) + (0.4 if number == 5 else 0.0),
        phase="checkpoint" if saves or (number == STUCK and left_s < HUNG_S) else "",
        problem="no rights" if number == 7 and left_s > 1500 else "",
    )


def layers_at(left_s: float) -> Iterator[WatchedLayer]:
    """Twelve MoE layers; from the fourth on, one after the other, they send ever more to one expert."""
    for number in range(12):
        ill_s = max(0.0, 1500.0 - left_s - 60 * abs(number - 4))
        ill = (LayerIllness(kind=Kind.DROP_SPIKE, since_step=400 + 30 * abs(number - 4)),) if ill_s > 120 else ()
        yield layer(number, 1.2 + 0.05 * math.sin(left_s / 30 + number) + min(3.0, ill_s / 300), ill)


def card_at(number: int, left_s: float) -> CardShown:
    """The GPU of that rank. While it waits it is busy and draws little; the one that is waited for does nothing."""
    is_hung = left_s < HUNG_S
    works = 0.0 if is_hung else 1.0
    return CardShown(
        **{
            **{field: getattr(card(number), field) for field in card(number).__dataclass_fields__},
            "utilization_ratio": (0.0 if number == STUCK else 1.0) if is_hung else 0.93 + 0.05 * math.sin(left_s / 30 + number),
            "power_watts": 140 + 480 * works + 25 * math.sin(left_s / 45 + number) * works,
            "temperature_celsius": 48 + 18 * works + number,
            "last_xid": 94 if number == 3 and left_s < 900 else None,
            "clock_reasons": ("power cap",) if works else ("idle",) if number == STUCK else (),
            "nvlink_errors": 7 + int((MINUTES * 60 - left_s) / 90),
            "is_lost": number == 6 and left_s < 60,
            "down_links": int(number == 3 and left_s < 900),
        }
    )


def agents_at(now_s: float, left_s: float) -> Iterator[tuple[AgentSnapshot, list[CardShown]]]:
    """What two agents show."""
    hung = hung_job() if left_s < HUNG_S - 45 else job()
    training = msgspec.structs.replace(
        hung, ranks=tuple(rank_at(number, left_s) for number in range(8)), layers=tuple(layers_at(left_s))
    )
    taken_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_s))
    counts = {
        "scans": 3 + int(left_s < HUNG_S - 30),
        "looks": 0,
        "refusals": int((MINUTES * 60 - left_s) / 200),
        "notifications": 1,
    }
    first = msgspec.structs.replace(snapshot(training), taken_at=taken_at, counts=counts)
    other = msgspec.structs.replace(snapshot(job("team-a/llama", 4)), host="gpu-n06", taken_at=taken_at, problems={}, unsent=0)
    yield first, [card_at(number, left_s) for number in range(8)]
    yield other, []


def history(now_s: float) -> str:
    """OpenMetrics, each sample with its time and its target's labels."""
    lines = []
    for left_s in range(MINUTES * 60, -1, -SCRAPE_S):
        at_s = now_s - left_s
        for found, cards in agents_at(at_s, left_s):
            target = f'job="pardbg",instance="{found.host}:9475"'
            page = metrics_text(found, cards, "application/openmetrics-text")[0].decode()
            lines += [stamp(line, target, at_s) for line in page.splitlines() if not line.startswith("#")]
            lines.append(f"up{{{target}}} 1 {at_s}")
        lines.append(f'up{{job="pardbg",instance="gpu-n07:9475"}} {int(left_s > 300)} {at_s}')
    return "\n".join([*lines, "# EOF", ""])


def stamp(line: str, target: str, at_s: float) -> str:
    """A sample as it is stored."""
    found = _NAME.match(line)
    assert found, line
    labels = f"{found[2]},{target}" if found[2] else target
    return f"{found[1]}{{{labels}}} {found[3]} {at_s}"


@contextlib.contextmanager
def serving(now_s: float) -> Iterator[str]:
    """A real Prometheus with that history, its address; on loopback, gone afterwards."""
    prometheus, promtool = needs("prometheus"), needs("promtool")
    with tempfile.TemporaryDirectory(prefix="pardbg-prometheus-") as name:
        folder = Path(name)
        (folder / "history.om").write_text(history(now_s))
        fill = [promtool, "tsdb", "create-blocks-from", "openmetrics", str(folder / "history.om"), str(folder / "data")]
        filled = subprocess.run(fill, capture_output=True, text=True, check=False, timeout=60)
        assert filled.returncode == 0, filled.stderr
        (folder / "prometheus.yml").write_text("global: {scrape_interval: 15s}\n")
        address = f"127.0.0.1:{free_port()}"
        options = [
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address={address}",
        ]
        with (folder / "log").open("wb") as log, subprocess.Popen([prometheus, *options], stdout=log, stderr=log) as server:
            try:
                wait_until_ready(f"http://{address}", folder / "log")
                yield f"http://{address}"
            finally:
                server.terminate()
                server.wait(20)


def wait_until_ready(url: str, log: Path) -> None:
    """Until it answers queries."""
    until_s = time.monotonic() + _START_S
    while time.monotonic() < until_s:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/-/ready", timeout=2):  # noqa: S310
            return
        time.sleep(0.1)
    pytest.fail(f"Prometheus does not start: {log.read_text()[-2000:]}")


def free_port() -> int:
    """A port of loopback that nobody has now."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])
