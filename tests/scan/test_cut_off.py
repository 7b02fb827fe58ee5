"""A scan over ssh, with network namespaces as hosts, one of which is cut off in mid-scan: it ends, and says which."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pardbg.watchdog.outputs.validation import validate_report
from tests.transport.ssh_hosts import Host, Network, running_network, why_not

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]

JOB = f"cut-off-{os.getpid()}"
UP_S, ENDS_S = 30.0, 45.0


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    """Two hosts."""
    if reason := why_not():
        pytest.skip(reason)
    with running_network(tmp_path) as started:
        started.add()
        started.add()
        yield started


@pytest.fixture
def ssh(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own configuration of ssh, which is read from a place that no variable changes."""
    folder = network.folder / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh {" ".join(network.options)} "$@"\n')
    (folder / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.fixture
def ranks(network: Network) -> Iterator[None]:
    """Four processes that wait, two of them for each host (they run here: hosts have their networks alone)."""
    shared = {"WORLD_SIZE": "4", "MASTER_ADDR": "10.9.9.9", "MASTER_PORT": "29778", "PARDBG_JOB": JOB}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(120)"],
            env={**os.environ, **shared, "RANK": str(rank), "SLURMD_NODENAME": network.hosts[rank // 2].address},
        )
        for rank in range(4)
    ]
    yield
    for process in started:
        process.kill()
        process.wait()


def collects(host: Host) -> bool:
    """Whether pardbg has come up there."""
    return any("collect" in command_line(pid).split("\0") for pid in host.pids())


def command_line(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    return ""


@pytest.mark.usefixtures("ssh", "ranks")
def test_a_host_that_is_cut_off_in_mid_scan_is_named_and_holds_nobody_up(network: Network) -> None:
    kept, cut = network.hosts
    command = [sys.executable, "-m", "pardbg", "scan", "--job", JOB, "--interval", "1.5", "--json"]
    began_s = time.monotonic()
    with subprocess.Popen(
        [*command, "--hosts", f"root@{kept.address},{cut.address}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as scanning:
        while not (collects(kept) and collects(cut)):
            assert time.monotonic() < began_s + UP_S
            time.sleep(0.05)
        time.sleep(0.5)
        cut.cut()
        cut_s = time.monotonic()
        told, errors = scanning.communicate(timeout=ENDS_S)
    report = json.loads(told)
    validate_report(report)
    assert f"1 of 2 nodes answered, missing {cut.address}: " in report["notes"][0], (report, errors)
    assert scanning.returncode == 4
    assert not any(finding["culprits"] for finding in report["findings"])
    assert cut.address in {unknown["host"] for unknown in report["unknowns"]}
    assert report["coverage"]["ranks_seen"] >= 2
    assert time.monotonic() - cut_s < ENDS_S
