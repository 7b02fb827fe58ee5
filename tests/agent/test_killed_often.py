"""SIGKILL at random moments while a real job hangs and the receiver comes and goes: the same one incident, whole evidence."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.figures import RecordProperty, note
from tests.agent.running import RunningAgent, running_agent, wait_for
from tests.incidents.making import Hook, hook
from tests.live.running import RunningJob, process_state, running_job
from tests.live.scanning import Scan

pytestmark = [pytest.mark.live, pytest.mark.slow]

ROUNDS = int(os.environ.get("PARDBG_TEST_ROUNDS", "200"))
SOON = ("--silent-after", "4", "--silent-at-most", "6")
SOON_S, LATE_S = 3.0, 16.0
"""Half of the kills come while it starts; the others also while it scans, keeps evidence, and tells."""
OPENINGS = 10
ANSWERS = (200, 200, 503, 429, 500)
NAME = "killed-often"


@contextlib.contextmanager
def flapping(receiver: Hook) -> Iterator[None]:
    """It takes some letters, and says to others that it is ill."""
    ending = threading.Event()

    def flap() -> None:
        while not ending.wait(0.7):
            receiver.status = random.choice(ANSWERS)
        receiver.status = 200

    thread = threading.Thread(target=flap)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def kill_again_and_again(agent: RunningAgent, rounds: int) -> Counter[str]:
    """Starts and kills; says what the agent was at when it died, by its log."""
    at: Counter[str] = Counter()
    random.seed(7)
    for number in range(rounds):
        begun = agent.log.stat().st_size
        agent.launch()
        time.sleep(random.uniform(0.0, SOON_S if number % 2 else LATE_S))
        agent.end(signal.SIGKILL)
        log = agent.log.read_bytes()[begun:].decode(errors="replace")
        own = [line for line in log.splitlines() if f" {NAME}: " in line]
        at["scanning" if own and own[-1].endswith("scanning") else "judged" if own else "watching" if log else "starting"] += 1
    return at


def test_agent_that_is_killed_200_times_loses_nothing_and_harms_nobody(tmp_path: Path, record_property: RecordProperty) -> None:
    with (
        hook() as told,
        running_agent(*SOON, "--webhook", told.url) as agent,
        running_job("train", "--fault", "checkpoint", folder=tmp_path, job_id=NAME) as job,
    ):
        job.wait_until_hung()
        pids = job.pids
        first = wait_for(lambda: agent.incidents(NAME), 60.0, agent.tell)[0]["id"]
        agent.end(signal.SIGKILL)
        with flapping(told):
            at = kill_again_and_again(agent, ROUNDS)
        wait_for(lambda: not orphans(agent.state), 100.0, "scans of killed agents end by themselves")
        ending_s = end_while_it_scans(agent)
        left = [path.name for path in (agent.state / "evidence").iterdir() if path.name.startswith(".")]
        kept = sorted(path for path in (agent.state / "evidence").iterdir() if not path.name.startswith("."))
        verdicts = [Scan.of_files(path) for path in kept]
        agent.start()
        assert job.pids == pids
        assert {process_state(pid) for pid in pids.values()} <= {"S", "R"}
        release(job)
        found = wait_for(lambda: closed(agent), 60.0, agent.tell)
        events = wait_for(lambda: "recovered" in events_of(told) and events_of(told), 60.0, agent.tell)
    bodies = [body for body in told.bodies if body["job"] == NAME]
    figures = {
        "ending_s": round(ending_s, 1),
        "rounds": ROUNDS,
        "at": dict(at),
        "incidents": len(found),
        "left": left,
        "folders": len(kept),
        "events": events,
    }
    note(record_property, "killed", {**figures, "ids_told": sorted({body["id"] for body in bodies}), "first": first})
    assert [one["id"] for one in found] == [first]
    assert left == []
    assert first in [path.name for path in kept]  # other people's jobs may hang here
    assert [(scan.exit_code, scan.blamed) for path, scan in zip(kept, verdicts, strict=True) if path.name == first] == [
        (3, {2})
    ]
    assert {body["id"] for body in bodies} == {first}


def test_agent_that_is_killed_just_when_it_opens_an_incident_finds_it_again(
    tmp_path: Path, record_property: RecordProperty
) -> None:
    name, after_ms, kept_then, told_ids = "killed-at-once", [], [], []
    with running_job("train", "--fault", "lock", folder=tmp_path, job_id=name) as job:
        job.wait_until_hung()
        pids = job.pids
        for _ in range(OPENINGS):
            with hook() as told, running_agent(*SOON, "--webhook", told.url) as agent:
                wait_for(lambda: f"{name}: hung" in agent.tell(), 90.0, agent.tell, poll_s=0.002)
                after_ms.append(random.uniform(0.0, 60.0))
                time.sleep(after_ms[-1] / 1000)
                agent.end(signal.SIGKILL)
                kept_then.append([one["id"] for one in agent.incidents(name)])
                agent.start()
                found = wait_for(lambda: agent.incidents(name), 90.0, agent.tell)
                wait_for(lambda: [body for body in told.bodies if body["job"] == name], 60.0, agent.tell)
                told_ids.append({body["id"] for body in told.bodies if body["job"] == name})
                assert [one["id"] for one in found] == sorted(told_ids[-1])
                assert kept_then[-1] in ([], sorted(told_ids[-1]))
        assert job.pids == pids
    kept = sum(map(bool, kept_then))
    note(record_property, name, {"rounds": OPENINGS, "was_kept": kept, "after_ms": [round(one) for one in after_ms]})


def end_while_it_scans(agent: RunningAgent) -> float:
    """Starts it, and ends it in order in the middle of a scan; how long that took, seconds."""
    begun = agent.log.stat().st_size
    agent.start()
    wait_for(lambda: f"{NAME}: ranks" in agent.log.read_bytes()[begun:].decode(errors="replace"), 60.0, agent.tell)
    began_s = time.monotonic()
    assert agent.end() == 0
    return time.monotonic() - began_s


def orphans(state: Path) -> list[int]:
    """Scans that an agent of this state folder has started and that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if b"scan" in (words := path.read_bytes()) and os.fsencode(state) in words:
                found.append(int(path.parent.name))
    return found


def release(job: RunningJob) -> None:
    """The dead server lives after all; training must go on."""
    drain = "import sys\nwith open(sys.argv[1], 'rb', buffering=0) as file:\n while file.read(65536): pass"
    path = job.folder / "work" / "shard_stuck.pt"
    steps = job_steps(job)
    with contextlib.suppress(subprocess.TimeoutExpired):  # the rank holds a writing end, too: the pipe has no end
        subprocess.run([sys.executable, "-c", drain, str(path)], timeout=3.0, check=False)
    wait_for(lambda: job_steps(job) > steps + 10, 20.0, job.last_words)


def job_steps(job: RunningJob) -> int:
    """How many steps rank 0 has logged."""
    return sum(path.read_text().count(" loss ") for path in (job.folder / "logs").rglob("*.log"))


def closed(agent: RunningAgent) -> list[dict[str, Any]]:
    """All incidents of the job, if none is open."""
    found = agent.incidents(NAME)
    return found if found and all(one["state"] != "open" for one in found) else []


def events_of(told: Hook) -> dict[str, int]:
    """How often the receiver was told of what."""
    return dict(Counter(body["event"] for body in told.bodies if body["job"] == NAME))
