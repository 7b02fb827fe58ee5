"""Signs of life of real processes, read from outside."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pardbg.collectors.procfs.stat import parse_stat
from pardbg.collectors.procfs.vital import Vital, parse_vital
from pardbg.collectors.vitals.newcomers import Newcomers
from pardbg.collectors.vitals.patient import Patient
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.world import RankProcess

SLEEPER = "import time\nwhile True: time.sleep(0.05)"
WAITER = "import threading; threading.Event().wait()"


@pytest.fixture
def children() -> Iterator[list["subprocess.Popen[bytes]"]]:
    """Processes that end with the test."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def rank_of(pid: int) -> RankProcess:
    """The rank that a process is."""
    started_ticks = parse_stat(Path(f"/proc/{pid}/stat").read_text()).started_ticks
    return RankProcess(rank=0, pid=pid, started_ticks=started_ticks, host="here", uid=os.getuid())


def start(children: list["subprocess.Popen[bytes]"], program: str) -> int:
    """Starts a Python that runs the program, and gives it time to get there."""
    process = subprocess.Popen([sys.executable, "-c", program])
    children.append(process)
    time.sleep(0.3)
    return process.pid


def test_two_lines_of_status_are_read() -> None:
    status = (
        b"Name:\tpython\nUmask:\t0022\nState:\tS (sleeping)\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t3\n"
    )

    assert parse_vital(status) == Vital("S", 150)


@pytest.mark.parametrize("text", [b"", b"Name:\tx\n", b"\nState:\tS\nvoluntary_ctxt_switches:\tmany\n"])
def test_other_text_is_no_status(text: bytes) -> None:
    with pytest.raises(ParseError):
        parse_vital(text)


def test_process_that_wakes_shows_it_and_one_that_waits_does_not(children: list["subprocess.Popen[bytes]"]) -> None:
    patients = [Patient(rank_of(start(children, program))) for program in (SLEEPER, WAITER)]
    first = [patient.look() for patient in patients]
    time.sleep(0.5)
    second = [patient.look() for patient in patients]
    for patient in patients:
        patient.close()

    moved = [after.switches - before.switches for before, after in zip(first, second, strict=True) if before and after]
    assert moved[0] >= 5
    assert moved[1] == 0


def test_process_that_has_ended_shows_nothing_even_if_its_number_lives(children: list["subprocess.Popen[bytes]"]) -> None:
    pid = start(children, WAITER)
    patient = Patient(rank_of(pid))
    children[0].kill()
    children[0].wait()
    assert patient.look() is None
    patient.close()
    with pytest.raises(ProcessLookupError):
        Patient(RankProcess(rank=0, pid=os.getpid(), started_ticks=1, host="here"))


def test_newcomer_that_runs_python_is_noticed_once(children: list["subprocess.Popen[bytes]"]) -> None:
    newcomers = Newcomers()
    newcomers.is_any_python()
    pid = start(children, WAITER)

    assert Path(f"/proc/{pid}/comm").read_text().startswith("python")
    assert newcomers.is_any_python()
