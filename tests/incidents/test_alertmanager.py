"""A real Alertmanager, with a real webhook behind it."""

import contextlib
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pardbg.watchdog.incidents.clock import Clock
from pardbg.watchdog.incidents.incidents import Incidents
from pardbg.watchdog.incidents.receivers import Receiver, ReceiverKind
from tests.incidents.making import Hook, hook, report

pytestmark = pytest.mark.live

ALERTMANAGER = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
CONFIG = """
route: {{receiver: hook, group_by: [alertname, job_id], group_wait: 100ms, group_interval: 500ms, repeat_interval: 1h}}
receivers: [{{name: hook, webhook_configs: [{{url: '{url}'}}]}}]
"""
WORLD = "10.0.0.1:29500|40|0"


class Hurried(Clock):
    """Waits thirty times less, while the time of day is the world's: a minute between two alerts is two seconds."""

    def __init__(self) -> None:
        super().__init__(speed=30.0)

    def wall_s(self) -> float:
        """Epoch seconds."""
        return time.time()


@contextlib.contextmanager
def alertmanager(folder: Path, port: int, url: str) -> Iterator[None]:
    folder.mkdir(exist_ok=True)
    (folder / "am.yml").write_text(CONFIG.format(url=url))
    assert ALERTMANAGER is not None
    command = [ALERTMANAGER, f"--config.file={folder}/am.yml", f"--storage.path={folder}/data", "--cluster.listen-address="]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
    try:
        until(lambda: is_ready(port))
        yield
    finally:
        process.terminate()
        process.wait(10)


def is_ready(port: int) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=1) as answer:
        return int(answer.status) == 200
    return False


def until(is_so: Callable[[], object], timeout_s: float = 20.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def alerts(receiver: Hook, status: str, kind: str) -> list[Any]:
    return [
        alert
        for body in list(receiver.bodies)
        for alert in body["alerts"]
        if (alert["status"], alert["labels"]["kind"]) == (status, kind)
    ]


@pytest.mark.skipif(ALERTMANAGER is None, reason="apt-get install prometheus-alertmanager")
def test_alert_arrives_with_its_claim_and_again_after_a_crash_and_ends(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    manager = Receiver(kind=ReceiverKind.ALERTMANAGER, url=f"http://127.0.0.1:{port}")
    with hook() as receiver:
        agent = Incidents(tmp_path / "state", "n1", [manager], Hurried())
        one = agent.keep(WORLD, report())  # the manager is down
        until(lambda: "refused" in agent.problems.get("notifications", ""))

        with alertmanager(tmp_path / "am", port, receiver.url):
            until(lambda: alerts(receiver, "firing", "missing-participant"))
            fired = alerts(receiver, "firing", "missing-participant")[0]
            assert fired["labels"]["incident"] == one.id
            assert one.report.verdict is not None
            assert one.report.verdict.claim in fired["annotations"]["summary"]
            assert one.report.verdict.claim in fired["annotations"]["description"]
            until(lambda: not agent.unsent)
            assert "notifications" not in agent.problems

            agent.keep(WORLD, report("desync"))  # the verdict has changed
            until(lambda: alerts(receiver, "firing", "desync") and alerts(receiver, "resolved", "missing-participant"))

        receiver.bodies.clear()
        with alertmanager(tmp_path / "am2", port, receiver.url):  # has forgotten everything
            until(lambda: alerts(receiver, "firing", "desync"))
            assert alerts(receiver, "firing", "missing-participant") == []
        agent.end(WORLD)  # while it is down
        with alertmanager(tmp_path / "am2", port, receiver.url):
            until(lambda: alerts(receiver, "resolved", "desync"))
        until(lambda: not agent.unsent)
        agent.close()
