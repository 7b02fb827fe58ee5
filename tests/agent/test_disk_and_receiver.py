"""A full disk, and a receiver that is down: the incident is told as soon as it can be, and kept as soon as there is room."""

import contextlib
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agent.figures import RecordProperty, note
from tests.agent.running import RunningAgent, running_agent, wait_for
from tests.dashboards.history import free_port
from tests.incidents.making import hook
from tests.live.running import running_job

pytestmark = [pytest.mark.live, pytest.mark.slow]

SOON = ("--silent-after", "4", "--silent-at-most", "6")
DOWN_S = 120.0
"""An hour of it, by a quicker clock, is in tests/incidents/test_incidents.py; this is a real agent."""


@contextlib.contextmanager
def small_disk() -> Iterator[Path]:
    """A file system of 2 MB."""
    with tempfile.TemporaryDirectory(prefix="pdbg-full-") as name:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "pdbg", name],  # noqa: S607
            check=False,
            capture_output=True,
        )
        if mounted.returncode:
            pytest.skip("may not mount here")
        try:
            yield Path(name)
        finally:
            subprocess.run(["umount", "-l", name], check=True)  # noqa: S607


def fill(folder: Path) -> Path:
    """Takes all that is left of a disk."""
    filler = folder / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    return filler


@pytest.mark.parametrize("when", ["before-the-agent", "before-the-hang"])
def test_full_disk_keeps_nobody_from_being_told(when: str, tmp_path: Path, record_property: RecordProperty) -> None:
    name = f"full-{when}"
    with contextlib.ExitStack() as closing:
        disk, told = closing.enter_context(small_disk()), closing.enter_context(hook())
        filler = fill(disk) if when == "before-the-agent" else None
        agent = RunningAgent(disk / "state", free_port(), (*SOON, "--webhook", told.url), tmp_path / "log")
        agent.start()
        closing.callback(agent.end)
        filler = filler or fill(disk)
        job = closing.enter_context(running_job("train", "--fault", "lock", folder=tmp_path, job_id=name))
        job.wait_until_hung()
        body = wait_for(lambda: [body for body in told.bodies if body["job"] == name], 60.0, agent.tell)[0]
        problem = [line for line in agent.tell().splitlines() if " ERROR " in line]
        filler.unlink()
        kept = wait_for(lambda: _kept(agent, name), 30.0, agent.tell)
        agent.end(signal.SIGKILL)
        agent.start()
        time.sleep(3.0)
        again = _kept(agent, name)
        told_ids = {body["id"] for body in told.bodies if body["job"] == name}
    note(record_property, name, {"problem": problem[:1], "kept": kept, "after_kill": again, "told": len(told_ids)})
    assert kept == again == [body["id"]]
    assert told_ids == {body["id"]}


def _kept(agent: RunningAgent, name: str) -> list[str]:
    """Ids of what is on the disk."""
    with contextlib.suppress(subprocess.CalledProcessError):
        return [one["id"] for one in agent.incidents(name)]
    return []


def test_receiver_that_is_down_is_told_when_it_is_back_also_by_the_next_agent(
    tmp_path: Path, record_property: RecordProperty
) -> None:
    port = free_port()
    with running_agent(*SOON, "--webhook", f"http://127.0.0.1:{port}/hook") as agent:
        with running_job("train", "--fault", "lock", folder=tmp_path, job_id="unheard") as job:
            job.wait_until_hung()
            first = wait_for(lambda: agent.incidents("unheard"), 60.0, agent.tell)[0]["id"]
        wait_for(lambda: [one for one in agent.incidents("unheard") if one["state"] == "ended"], 30.0, agent.tell)
        agent.end(signal.SIGKILL)
        agent.start()
        began_s = time.monotonic()
        time.sleep(DOWN_S)
        with hook(port) as told:
            bodies = wait_for(lambda: [b for b in told.bodies if b["job"] == "unheard"][1:] and told.bodies, 200.0, agent.tell)
            waited_s = time.monotonic() - began_s - DOWN_S
    events = [body["event"] for body in bodies if body["job"] == "unheard"]
    note(record_property, "receiver-down", {"down_s": DOWN_S, "told_after_s": round(waited_s, 1), "events": events})
    assert events == ["opened", "ended"]
    assert {body["id"] for body in bodies if body["job"] == "unheard"} == {first}
