"""The unit as systemd runs it, with its filters and capabilities: a rank of another user must be seen through all of them.

One systemd and one rank serve all that is checked; about 7 s.
"""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.booted import Booted, booted, why_not
from tests.deploy.rank_program import STEP

ROOT = Path(__file__).resolve().parents[2]
SYSTEMD = ROOT / "deploy/systemd"
UNIT = (SYSTEMD / "pardbg-agent.service").read_text()
ATTACH = (SYSTEMD / "attach.conf").read_text()
NOBODY = 65534
WITHIN_S = 60.0
CONTAINER = f"""\
[Service]
CapabilityBoundingSet=
CapabilityBoundingSet=CAP_SYS_PTRACE CAP_DAC_READ_SEARCH
ProtectSystem=strict
PrivateTmp=yes
BindReadOnlyPaths={ROOT}
"""
"""What an agent in a pod of the Helm chart has: two capabilities, and a mount namespace of its own; we may lie in /tmp."""
PARDBG = "/opt/pardbg/bin/pardbg"
PREPARE = f"""\
mkdir -p /opt/pardbg/bin
printf '#!/bin/sh\\nexec {sys.executable} -P -m pardbg "$@"\\n' > {PARDBG}
chmod 755 {PARDBG}
"""
RANK = ("RANK=0", "WORLD_SIZE=1", "LOCAL_RANK=0", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500", "PARDBG_JOB=deployed")
SCAN = f"{PARDBG} scan --job deployed --attach never --interval 0.2 --json"
STOP = f"{Path(sys.executable).parent}/py-spy dump --pid $RANK"
BECOME = f'{sys.executable} -c "import os; os.setgroups([1]); os.setegid(1); os.seteuid({NOBODY}); print(os.getresuid())"'

pytestmark = [pytest.mark.live, pytest.mark.skipif(bool(why_not()), reason=why_not())]


@dataclass(frozen=True)
class Node:
    """A machine with the agent's unit running, and one rank of another user."""

    machine: Booted
    rank: int

    @property
    def visitors(self) -> Path:
        """Written by the rank when its recorder is asked."""
        return self.machine.work / "visitors"

    def said_by(self, *names: str) -> list[str]:
        """What commands say that systemd starts, side by side, with everything that the unit demands."""
        self.machine.run("systemctl", "set-environment", f"RANK={self.rank}")
        self.machine.run("systemctl", "start", *(f"{name}.service" for name in names), timeout_s=WITHIN_S)
        return [(self.machine.work / f"{name}.said").read_text() for name in names]


def like_the_unit(command: str, name: str, more: str = "") -> dict[str, str]:
    """The unit with another command."""
    other = f"""\
[Service]
Type=oneshot
Restart=no
PassEnvironment=RANK
ExecStart=
ExecStart=/bin/sh -c '{command}; true'
StandardOutput=file:{{work}}/{name}.said
StandardError=null
"""
    return {f"{name}.service": UNIT, f"{name}.service.d/10.conf": more, f"{name}.service.d/20.conf": other}


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    units = {
        "pardbg-agent.service": UNIT,
        **like_the_unit(SCAN, "scan"),
        **like_the_unit(SCAN, "container", CONTAINER),
        **like_the_unit(f"{STOP}; {BECOME}", "stop"),
        **like_the_unit(f"{STOP}; {BECOME}", "attach", ATTACH),
    }
    with booted(units, PREPARE) as machine, rank_of_nobody(machine) as rank:
        yield Node(machine, rank)


@contextlib.contextmanager
def rank_of_nobody(machine: Booted) -> Iterator[int]:
    """A rank of another user; gives its number in there."""
    number = machine.work / "rank.pid"
    program = Path(__file__).parent / "rank_program.py"
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--bounding-set=-all"]
    rank = ["env", *RANK, sys.executable, "-P", str(program), str(machine.work)]
    with subprocess.Popen(machine.command(*as_nobody, *rank), stdin=subprocess.DEVNULL) as process:
        try:
            wait_until(number.exists)
            yield int(number.read_text())
        finally:
            process.kill()


def wait_until(is_so: Any) -> None:
    until_s = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < until_s
        time.sleep(0.05)


def jobs_of(machine: Booted) -> list[Any]:
    said = machine.run("curl", "-s", "--unix-socket", "/run/pardbg/agent.sock", "http://agent/v1/jobs")
    jobs: list[Any] = json.loads(said)["jobs"] if said.startswith("{") else []
    return jobs


def test_unit_is_ready_only_when_it_listens_and_sees_the_page_of_another_users_rank(node: Node) -> None:
    assert node.machine.run("systemctl", "start", "pardbg-agent") == ""
    wait_until(lambda: any(job["ranks"] and job["ranks"][0]["step"] == STEP for job in jobs_of(node.machine)))
    (job,) = jobs_of(node.machine)
    assert (job["job_id"], job["uids"], job["ranks"][0]["pid"]) == ("deployed", [NOBODY], node.rank)
    began_s = time.monotonic()
    node.machine.run("systemctl", "stop", "pardbg-agent")
    assert time.monotonic() - began_s < 5
    assert "Result=success" in node.machine.run("systemctl", "show", "--property=Result", "pardbg-agent")


def test_its_scan_sees_stacks_and_asks_recorders_of_which_a_container_may_not_ask_those_of_others(node: Node) -> None:
    as_it_is, boxed = (json.loads(said) for said in node.said_by("scan", "container"))
    assert as_it_is["coverage"]["by_collector"]["stacks"] == boxed["coverage"]["by_collector"]["stacks"] == 1
    denied = {unknown["collector"] for unknown in as_it_is["unknowns"] if unknown["reason"] == "denied"}
    assert denied <= {"kernel-log"}  # that would take CAP_SYSLOG
    assert node.visitors.exists()
    assert not any("another mount namespace" in unknown["detail"] for unknown in boxed["unknowns"])
    assert any("socket belongs to another user" in unknown["detail"] for unknown in boxed["unknowns"])


def test_it_can_stop_ranks_and_become_their_users_only_where_the_site_lets_it_attach(node: Node) -> None:
    as_it_is, attaching = node.said_by("stop", "attach")
    assert "wait_for_the_others" not in as_it_is
    assert f"(0, {NOBODY}, 0)" not in as_it_is
    assert "wait_for_the_others" in attaching
    assert f"(0, {NOBODY}, 0)" in attaching
