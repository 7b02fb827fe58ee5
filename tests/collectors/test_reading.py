"""Children that hang, die or talk nonsense; none outlives its reader."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pardbg.collectors.reading import Reader
from pardbg.collectors.reading_children import reader_command
from pardbg.collectors.reading_protocol import FileRead, ListedFile
from pardbg.watchdog.model.names import AbsenceReason
from tests.collectors.dumps import make_dump, make_entry, pickled, write_ring

DEADLINE_S = 1.0

# Serves like a child, but is stopped by the file called `trap` in the way that its content says.
STUBBORN = """
import os, sys, time
sys.path += {places!r}
from pardbg.collectors import reading_child
read = reading_child.answer_read
def answer(request):
    if request.path.endswith(b"trap"):
        way = open(request.path).read()
        if way == "hang": time.sleep(60)
        if way == "die": os.kill(os.getpid(), 9)
        if way == "babble": return b"\\xff" * 64
        if way == "lie": return b"\\x03\\0\\0\\0\\0\\0\\0\\0abc"
    return read(request)
reading_child.answer_read = answer
reading_child.main()
"""


def stubborn() -> list[str]:
    command = reader_command()
    return [*command[:4], STUBBORN.format(places=command[5:])]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(20):
        (tmp_path / f"rank_{number:02}").write_bytes(pickled(make_dump([make_entry(number)])))
    return tmp_path


def listed(folder: Path) -> list[tuple[bytes, ListedFile]]:
    root = os.fsencode(folder)
    return [
        (
            root,
            ListedFile(
                path=path.name, real_path=os.fsencode(path), size_bytes=path.stat().st_size, device=1, inode=path.stat().st_ino
            ),
        )
        for path in sorted(folder.iterdir())
    ]


def reasons(answers: dict[str, FileRead]) -> dict[str, AbsenceReason]:
    return {name: answer.problem.reason for name, answer in answers.items() if answer.problem is not None}


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("hang", AbsenceReason.TIMED_OUT),
        ("die", AbsenceReason.UNREADABLE),
        ("babble", AbsenceReason.UNREADABLE),
        ("lie", AbsenceReason.UNREADABLE),
    ],
)
def test_child_that_fails_costs_its_file_only(way: str, reason: AbsenceReason, folder: Path) -> None:
    (folder / "a_trap").write_text(way)
    (folder / "rank_10_trap").write_text(way)
    start_s = time.monotonic()
    with Reader(deadline_s=DEADLINE_S, command=stubborn()) as reader:
        answers = reader.read(listed(folder), lambda _: None)
        pids = reader.pids
    assert reasons(answers) == {"a_trap": reason, "rank_10_trap": reason}
    assert len(answers) == 22
    assert time.monotonic() - start_s < 10
    assert not any(is_alive(pid) for pid in pids)


def test_file_system_that_never_answers_is_left_alone(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number}_trap").write_text("hang")
    start_s = time.monotonic()
    with Reader(deadline_s=DEADLINE_S, command=stubborn()) as reader:
        answers = reader.read(listed(tmp_path), lambda _: None)
    assert set(reasons(answers).values()) == {AbsenceReason.TIMED_OUT}
    assert len(answers) == 40
    assert sum("not tried" in answer.problem.detail for answer in answers.values() if answer.problem) >= 34
    assert time.monotonic() - start_s < 12 * DEADLINE_S


def test_walk_that_never_answers_is_a_problem() -> None:
    with Reader(deadline_s=DEADLINE_S, command=[sys.executable, "-c", "import time; time.sleep(60)"]) as reader:
        listings, troubles = reader.walk([b"/tmp"])
    assert listings == []
    assert [getattr(trouble, "reason", None) for trouble in troubles] == [AbsenceReason.TIMED_OUT]


def test_program_that_cannot_start_is_a_problem_of_each_file(folder: Path) -> None:
    with Reader(command=["/nowhere/python"]) as reader:
        answers = reader.read(listed(folder), lambda _: None)
    assert set(reasons(answers).values()) == {AbsenceReason.UNREADABLE}
    assert len(answers) == 20


def test_child_killed_from_outside_is_replaced(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"rank_{number}").write_bytes(write_ring(20_000))
    with Reader() as reader:
        killed: list[int] = []

        def kill(count: int) -> None:
            if count == 2 and not killed:
                killed.append(reader.pids[0])
                os.kill(reader.pids[0], signal.SIGKILL)

        answers = reader.read(listed(tmp_path), kill)
    assert killed
    assert len(answers) == 6
    assert len(reasons(answers)) <= 1


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_interrupt_keeps_what_was_read_and_leaves_no_child_behind(tmp_path: Path) -> None:
    (tmp_path / "a_trap").write_text("hang")
    program = (
        "import os, sys\nfrom pathlib import Path\n"
        "from tests.collectors.test_reading import listed, stubborn\n"
        "from pardbg.collectors.reading import Reader\n"
        "with Reader(deadline_s=60, command=stubborn()) as reader:\n"
        "    print('ready', flush=True)\n"
        f"    answers = reader.read(listed(Path({str(tmp_path)!r})), lambda _: None)\n"
        "print(reader.is_interrupted, [answer.problem.reason.value for answer in answers.values()])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONSAFEPATH": "", "PYTHONPATH": str(Path(__file__).parents[2])}, text=True,
    ) as parent:  # fmt: skip
        timer = threading.Timer(20, parent.kill)
        timer.start()
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        while not (children := children_of(parent.pid)) and parent.poll() is None:
            time.sleep(0.05)
        time.sleep(0.3)
        parent.send_signal(signal.SIGINT)
        assert parent.stdout.readline() == "True ['skipped']\n"
        assert parent.wait(timeout=10) == 0
        timer.cancel()
    assert children
    assert not any(is_alive(pid) for pid in children)


def test_one_small_file_is_read_at_once(tmp_path: Path) -> None:
    (tmp_path / "rank_0").write_bytes(pickled(make_dump([make_entry(0)])))
    start_s = time.monotonic()
    with Reader() as reader:
        reader.read(listed(tmp_path), lambda _: None)
        assert len(reader.pids) == 1
    assert time.monotonic() - start_s < 2


def test_child_imports_little() -> None:
    *start, code, first, second = [*reader_command(), ""][:7]
    listing = code.replace("main()", "print(*sorted(sys.modules))")
    done = subprocess.run([*start, listing, first, second], capture_output=True, text=True, check=True, timeout=20)
    assert not {"click", "rich", "jinja2", "torch", "numpy", "asyncio", "site"} & set(done.stdout.split())
