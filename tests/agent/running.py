"""Real agents, a real Prometheus and a real Alertmanager for tests; all on loopback, all gone afterwards."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.dashboards.history import free_port, needs

RULES = Path(__file__).parents[2] / "dashboards" / "rules" / "pardbg-alerts.yaml"
_START_S = 30.0
_POLL_S = 0.2

_T = TypeVar("_T")


def wait_for(ask: Callable[[], _T | None], within_s: float, what: str | Callable[[], str], *, poll_s: float = _POLL_S) -> _T:
    """What ``ask`` gives, as soon as it gives something."""
    until_s = time.monotonic() + within_s
    while time.monotonic() < until_s:
        found = ask()
        if found:
            return found
        time.sleep(poll_s)
    pytest.fail(f"{what() if callable(what) else what}: not within {within_s:g} s")


def get(url: str, token: str = "") -> Any:
    """The JSON there, None if nobody answers."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - ours
    with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
        return json.loads(answer.read())
    return None


def series_of(port: int, metric: str, job: str) -> list[str]:
    """The lines of an agent's page of metrics that tell of a job."""
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
        return [line for line in lines if line.startswith(metric + "{") and f'job_id="{job}"' in line]
    return []


@dataclass
class RunningAgent:
    """An agent; ``pid`` is of its own process."""

    state: Path
    port: int
    options: tuple[str, ...]
    log: Path
    python: str = sys.executable
    env: dict[str, str] = field(default_factory=dict)
    process: "subprocess.Popen[bytes]" = field(init=False)

    def start(self) -> None:
        """Starts it and waits until it answers."""
        self.launch()
        wait_for(lambda: get(f"http://127.0.0.1:{self.port}/healthz"), _START_S, lambda: f"the agent answers: {self.tell()}")

    def launch(self) -> None:
        """Starts it."""
        command = [self.python, "-m", "pardbg", "agent", "--state", str(self.state), "--socket", str(self.state / "socket")]
        command += ["--listen", f"127.0.0.1:{self.port}", *self.options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, env={**os.environ, **self.env}
            )

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ends it, and gives its exit code."""
        self.process.send_signal(number)
        return self.process.wait(20)

    @property
    def pid(self) -> int:
        """Of the agent itself."""
        return self.process.pid

    def incidents(self, job: str) -> list[dict[str, Any]]:
        """What `pardbg incidents list` says of a job. Other tests' jobs may run on this machine, and hang."""
        command = [sys.executable, "-m", "pardbg", "incidents", "list", "--json", "--state", str(self.state)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found: list[dict[str, Any]] = json.loads(done.stdout)["incidents"]
        return [one for one in found if one["job"] == job]

    def tell(self) -> str:
        """Its log, for a test that fails."""
        return self.log.read_text()

    def memory_bytes(self) -> int:
        """Resident memory of the agent and all its children, shared parts counted once each (PSS)."""
        return sum(_pss(pid) for pid in _family(self.pid))


@contextlib.contextmanager
def running_agent(
    *options: str, port: int = 0, python: str = sys.executable, env: dict[str, str] | None = None
) -> Iterator[RunningAgent]:
    """An agent with a state folder of its own, in a short path: there is a socket in it."""
    with tempfile.TemporaryDirectory(prefix="pdbg-") as name:
        folder = Path(name)
        agent = RunningAgent(folder / "state", port or free_port(), options, folder / "log", python, env or {})
        agent.start()
        try:
            yield agent
        finally:
            if agent.process.poll() is None:
                agent.end()


@contextlib.contextmanager
def running_agents(*nodes: str, options: tuple[str, ...]) -> Iterator[list[RunningAgent]]:
    """Agents that know of each other, one a node."""
    ports = [free_port() for _ in nodes]
    everybody = ("--agents", ",".join(f"127.0.0.1:{port}" for port in ports))
    with contextlib.ExitStack() as closing:
        yield [
            closing.enter_context(running_agent("--node", node, *everybody, *options, port=port))
            for node, port in zip(nodes, ports, strict=True)
        ]


@contextlib.contextmanager
def running_alerting(targets: list[str], webhook: str, *, every: str, wait: str) -> Iterator[str]:
    """Prometheus, which scrapes targets and evaluates the shipped rules, and Alertmanager, which tells the webhook."""
    prometheus, alertmanager = needs("prometheus"), needs("prometheus-alertmanager")
    ports = [free_port() for _ in range(2)]
    with tempfile.TemporaryDirectory(prefix="pdbg-prom-") as name, contextlib.ExitStack() as closing:
        folder = Path(name)
        config: dict[str, Any] = {
            "global": {"scrape_interval": every, "evaluation_interval": every},
            "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": "pardbg", "static_configs": [{"targets": targets}]}],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{ports[1]}"]}]}]},
        }
        (folder / "prometheus.yml").write_text(json.dumps(config))
        route = {"receiver": "hook", "group_by": ["alertname", "job_id"], "group_wait": wait, "group_interval": wait}
        receivers = [{"name": "hook", "webhook_configs": [{"url": webhook}]}]
        (folder / "alertmanager.yml").write_text(json.dumps({"route": route, "receivers": receivers}))
        commands = [
            [
                alertmanager, f"--config.file={folder}/alertmanager.yml", f"--storage.path={folder}/am",
                f"--web.listen-address=127.0.0.1:{ports[1]}", "--cluster.listen-address=",
            ],
            [
                prometheus, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address=127.0.0.1:{ports[0]}",
            ],
        ]  # fmt: skip
        for command in commands:
            log = closing.enter_context((folder / f"log{len(command)}").open("wb"))
            server = closing.enter_context(subprocess.Popen(command, stdout=log, stderr=log))
            closing.callback(server.terminate)
        wait_for(lambda: get(f"http://127.0.0.1:{ports[0]}/api/v1/targets"), _START_S, "Prometheus answers")
        yield f"http://127.0.0.1:{ports[0]}"


def _family(pid: int) -> Iterator[int]:
    yield pid
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from _family(int(child))


def _pss(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def resident_bytes(pid: int) -> int:
    """Resident memory of a process and all that descends from it, shared parts counted in each (RSS)."""
    total = 0
    for member in _family(pid):
        with contextlib.suppress(OSError):
            total += int(Path(f"/proc/{member}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return total


def cpu_s(pid: int) -> float:
    """Processor time of a process and of all that descends from it, also of those that it has waited for."""
    ticks = 0
    for member in _family(pid):
        with contextlib.suppress(OSError):
            ticks += sum(map(int, Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
