"""Stacks that faulthandler left in a rank's files: real dumps, and when they no longer hold."""

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pardbg.collectors.live.fault_stacks import read_faulthandler_stacks
from pardbg.collectors.parsing.fault_dump import find_fault_stack
from pardbg.watchdog.model.evidence import Evidence, Stack
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from tests.collectors.live.started import identify, python, running, wait_for
from tests.collectors.live.test_logs import reasons, stuck

OTHER = 'Thread 0x00007f01 (most recent call first):\n  File "/lib/threading.py", line 324 in wait\n'
HEAD = "Thread 0x00007f02 (most recent call first):\n"
MAIN = HEAD + '  File "/app/t.py", line 12 in step\n  File "/app/t.py", line 30 in <module>\n'
DUMP = f"Timeout (0:00:05)!\n{OTHER}\n{MAIN}"
LATER = MAIN.replace("line 12", "line 77")
PROGRAM = """
import faulthandler, sys, threading, time
def hang():
    while True: time.sleep(60)
def idle():
    threading.Event().wait()
threading.Thread(target=idle, daemon=True).start()
print('starting', file=sys.stderr, flush=True)
{before}
hang()
"""


def names(stack: Stack | None) -> list[tuple[str, int]] | None:
    if stack is None or stack.main_thread is None:
        return None
    return [(frame.name, frame.line) for frame in stack.main_thread.frames]


STEP = [("step", 12), ("<module>", 30)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DUMP, STEP),
        ("epoch 1\n" + DUMP + "\n", STEP),
        ("100%|###| 3/3\r 5%|#    | 1/3 [00:01]" + DUMP, STEP),
        (MAIN.replace("Thread", "Current thread"), STEP),
        (OTHER + MAIN.replace("Thread 0x00007f02", "Current thread 0x00007f02 [python3]"), STEP),
        (DUMP + DUMP.replace("line 12", "line 77"), [("step", 77), ("<module>", 30)]),
        (OTHER + MAIN + OTHER + LATER, [("step", 77), ("<module>", 30)]),
        (f"Timeout (0:00:05.250000)!\n{OTHER}step 3\n{MAIN}", STEP),
        (DUMP + "host:1:2 [0] NCCL INFO x\n[rank0]:[E] ProcessGroupNCCL.cpp:632 Watchdog caught\n", STEP),
        (DUMP + "epoch 2\n", None),
        (DUMP + "Traceback (most recent call last):\n", None),
        ("Fatal Python error: Segmentation fault\n\n" + DUMP.partition("\n")[2], None),
        (DUMP + "Fatal Python error: Aborted\n\n" + MAIN, None),
        (DUMP.rstrip() + "\n...\n", None),
        (HEAD + '  File "/x/torch/utils/data/_utils/worker.py", line 3 in _worker_loop\n', None),
        ("Timeout (0:00:05)!\n", None),
        ("Timeout (0:00:05)!\n" + HEAD, None),
        ("", None),
        ('Traceback (most recent call last):\n  File "/app/t.py", line 12, in step\nValueError\n', None),
    ],
)
def test_last_dump_counts_if_nothing_but_chatter_follows(text: str, expected: list[tuple[str, int]] | None) -> None:
    assert names(find_fault_stack(text)) == expected


def test_many_foreign_lines_part_two_dumps() -> None:
    text = OTHER + MAIN + "step\n" * 30 + LATER.replace("0x00007f02", "0x00007f09")
    stack = find_fault_stack(text)
    assert stack is not None
    assert len(stack.threads) == 1


def test_thread_that_comes_again_begins_another_dump() -> None:
    stack = find_fault_stack(OTHER + MAIN + "\n" + OTHER + LATER)
    assert stack is not None
    assert len(stack.threads) == 2


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, len(DUMP)), text=st.text(max_size=20))
def test_any_piece_of_a_dump_is_survived(cut: int, text: str) -> None:
    find_fault_stack(DUMP[cut:] + text)
    find_fault_stack(text + DUMP[:cut])


def stacks(evidence: list[Evidence]) -> dict[int | None, list[str] | None]:
    return {
        item.rank: [name for name, _ in names(item.observation) or []]
        for item in evidence
        if isinstance(item.observation, Stack)
    }


def later(file: str = "") -> str:
    return PROGRAM.format(before=f"faulthandler.dump_traceback_later(0.2, repeat=True{file})")


def has_dump(log: Path) -> bool:
    text = log.read_text() if log.exists() else ""
    return text.count("Timeout (") >= 2 and text.endswith("<module>\n")


def test_dump_at_the_end_of_a_ranks_own_log_is_its_stack(tmp_path: Path) -> None:
    log = tmp_path / "stderr.log"
    with log.open("wb") as err, running(python(later()), err=err) as pid:
        wait_for(lambda: has_dump(log))
        start_s = time.time()
        (item,) = read_faulthandler_stacks([identify(pid, 4)])
    assert stacks([item]) == {4: ["hang", "<module>"]}
    assert isinstance(item.observation, Stack)
    assert item.observation.pid == pid
    assert [thread.name for thread in item.observation.threads] == ["", "MainThread"]
    assert (item.source, item.origin, item.host) == (CollectorName.STACKS, str(log), "node1")
    assert item.observed_at is not None
    assert item.observed_at[:16] == time.strftime("%Y-%m-%dT%H:%M", time.gmtime(start_s))


def test_dump_in_a_file_that_the_program_keeps_open_is_found(tmp_path: Path) -> None:
    log = tmp_path / "hang_trace.txt"
    with running(python(later(f", file=open({str(log)!r}, 'w')"))) as pid:
        wait_for(lambda: has_dump(log))
        assert stacks(read_faulthandler_stacks([identify(pid)])) == {0: ["hang", "<module>"]}


def test_program_that_printed_since_has_no_stack(tmp_path: Path) -> None:
    log = tmp_path / "log"
    before = "faulthandler.dump_traceback(); print('and on', file=sys.stderr, flush=True)"
    with log.open("wb") as err, running(python(PROGRAM.format(before=before)), err=err) as pid:
        wait_for(lambda: log.read_text().endswith("and on\n"))
        assert read_faulthandler_stacks([identify(pid)]) == []


def test_dump_of_before_the_standstill_is_not_used(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as err, running(python(PROGRAM.format(before="faulthandler.dump_traceback()")), err=err) as pid:
        wait_for(lambda: "Current thread" in log.read_text())
        rank = identify(pid)
        assert read_faulthandler_stacks([rank], not_before_s=time.time() + 1) == []
        assert stacks(read_faulthandler_stacks([rank], not_before_s=time.time() - 60)) == {0: ["<module>"]}


def test_dump_in_a_shared_log_is_nobodys(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("ab") as err, running(python(later()), err=err) as one, running(python(), err=err) as other:
        wait_for(lambda: has_dump(log))
        assert read_faulthandler_stacks([identify(one), identify(other, 1)], wanted={0}) == []


def test_only_the_wanted_ranks_are_told(tmp_path: Path) -> None:
    logs = [tmp_path / "a.log", tmp_path / "b.log"]
    with (
        logs[0].open("wb") as a,
        logs[1].open("wb") as b,
        running(python(later()), err=a) as one,
        running(python(later()), err=b) as two,
    ):
        wait_for(lambda: all(map(has_dump, logs)))
        ranks = [identify(one), identify(two, 1)]
        assert stacks(read_faulthandler_stacks(ranks, wanted={1})) == {1: ["hang", "<module>"]}
        assert read_faulthandler_stacks(ranks, wanted=(), command=["/nowhere/python"]) == []


def test_no_signal_is_sent(tmp_path: Path) -> None:
    log = tmp_path / "log"
    before = "faulthandler.register(10); import signal"
    with log.open("wb") as err, running(python(PROGRAM.format(before=before)), err=err) as pid:
        wait_for(lambda: "starting" in log.read_text())
        assert read_faulthandler_stacks([identify(pid)]) == []
        assert log.read_text() == "starting\n"


def test_dead_mount_costs_its_deadline(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as err, running(python(later()), err=err) as pid:
        start_s = time.monotonic()
        evidence = read_faulthandler_stacks([identify(pid)], within_s=1, command=stuck("list_outputs"))
        assert time.monotonic() - start_s < 2
    assert set(reasons(evidence)) == {(0, AbsenceReason.TIMED_OUT)}


@pytest.mark.parametrize("version", ["3.10.13", "3.12.1", "3.13.0"])
def test_dumps_of_other_pythons_are_read(version: str, tmp_path: Path) -> None:
    program = Path(f"/root/.pyenv/versions/{version}/bin/python")
    if not program.exists():
        pytest.skip(f"no Python {version} here")
    code = PROGRAM.format(before="faulthandler.dump_traceback()")
    log = tmp_path / "log"
    with log.open("wb") as err, running([str(program), "-c", code], err=err) as pid:
        wait_for(lambda: log.read_text().endswith("<module>\n"))
        assert stacks(read_faulthandler_stacks([identify(pid)])) == {0: ["<module>"]}
