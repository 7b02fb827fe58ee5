"""SIGKILL at random moments: nothing that was written is lost, and nothing is half there."""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from pardbg.watchdog.incidents.incidents import Incidents
from pardbg.watchdog.incidents.letters import all_letters
from pardbg.watchdog.incidents.store import IncidentStore
from pardbg.watchdog.model.incident import IncidentState
from tests.incidents.killed_program import FILES

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def quick_disk() -> Iterator[Path]:
    """SIGKILL loses nothing of what the kernel has, so a disk that syncs at once shows more in less time."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.mark.parametrize("rounds", [50, pytest.param(200, marks=pytest.mark.slow)])
def test_agent_that_is_killed_again_and_again_loses_nothing(quick_disk: Path, rounds: int) -> None:
    said = Counter[str]()
    command = [sys.executable, "-m", "tests.incidents.killed_program", str(quick_disk), str(rounds), "7"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True, timeout=300
    )
    said.update(line.split()[0] for line in done.stdout.splitlines())
    told = [line.split() for line in done.stdout.splitlines() if line != "ready"]
    opened, ended = ({one for word, one in told if word == wanted} for wanted in ("opened", "ended"))
    assert (said["killed"], said["failed"]) == (rounds, 0)
    assert len(opened) > rounds / 2
    assert ended

    Incidents(quick_disk, "n1").close()  # the next agent puts right what was left
    store = IncidentStore.for_reading(quick_disk)
    states = {one.id: one.state for one in store.all()}
    letters = Counter(letter.incident for letter in all_letters(store.database))
    assert store.database.rows("PRAGMA integrity_check") == [("ok",)]
    store.close()
    assert opened <= states.keys()
    assert {states[one] for one in ended} == {IncidentState.ENDED}
    assert letters == {one: 1 if state is IncidentState.OPEN else 2 for one, state in states.items()}
    assert list(quick_disk.glob("*corrupt*")) == []

    evidence = {
        path.name: sorted(file.stat().st_size for file in path.iterdir()) for path in (quick_disk / "evidence").iterdir()
    }
    assert opened <= evidence.keys()
    assert all(sizes == [3, *[2000] * FILES] for sizes in evidence.values())
    assert len(evidence.keys() - states.keys()) <= rounds  # whole, and not in the database: killed between the two
