"""Frames of training code get the source around them; nothing that a file does costs more than that."""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from pardbg.collectors.live.sources import MOST_FILES, annotate_stacks
from pardbg.collectors.reading import Reader, Task
from pardbg.collectors.reading_children import reader_command
from pardbg.collectors.reading_job import SourceRequest
from pardbg.collectors.reading_protocol import FileRead
from pardbg.watchdog.model.evidence import Absence, Evidence, SourceContext, Stack, StackFrame, Thread
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.world import RankProcess
from tests.collectors.live.started import identify, python, running

PROGRAM = "def step(x):\n    for _ in x:\n        dist.all_reduce(x, group=self.tp)\n    login('hunter2')\n"
STEP = SourceContext(loops=((2, 3),), calls=("dist.all_reduce",), group="self.tp")

# Serves like a child, but sleeps over files whose names end in `trap.py`, as over a dead mount.
STUCK = """
import sys, time
sys.path += {places!r}
from pardbg.collectors.live import answering
read = answering.read_source
def stuck(path, check=None):
    if path.endswith(b"trap.py"): time.sleep(60)
    return read(path, check)
answering.read_source = stuck
from pardbg.collectors import reading_child
reading_child.main()
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Others may enter it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture
def rank(source: Path) -> Iterator[RankProcess]:  # noqa: ARG001 - it starts after its source was written
    time.sleep(0.05)
    with running(python()) as pid:
        time.sleep(0.05)
        yield identify(pid)


def stuck() -> list[str]:
    command = reader_command()
    return [*command[:4], STUCK.format(places=command[5:])]


def frame(path: object, line: int = 3) -> StackFrame:
    return StackFrame(name="step", filename=str(path), line=line)


def stacked(*frames: StackFrame, rank: int = 0, child: str = "") -> Evidence:
    threads = (
        Thread(name="worker", is_active=False, owns_gil=False, frames=frames),
        Thread(name="MainThread", is_active=False, owns_gil=False, frames=frames),
    )
    return Evidence(
        source=CollectorName.STACKS, rank=rank, observation=Stack(pid=1, threads=threads, child=child), origin="py-spy"
    )


def contexts(item: Evidence, thread: int = 1) -> list[SourceContext | None]:
    assert isinstance(item.observation, Stack)
    return [found.source for found in item.observation.threads[thread].frames]


def reasons(evidence: list[Evidence]) -> list[tuple[AbsenceReason, str]]:
    return [(item.observation.reason, item.observation.detail) for item in evidence if isinstance(item.observation, Absence)]


def test_frames_of_the_main_thread_get_their_source(source: Path, rank: RankProcess) -> None:
    seen = stacked(frame(source), frame(source, 4), frame(source, 99), frame(sys.prefix + "/lib/python3.11/site-packages/x.py"))
    (found,) = annotate_stacks([seen], [rank])
    assert contexts(found) == [STEP, SourceContext(calls=("login",)), None, None]
    assert contexts(found, 0) == [None] * 4


def test_literals_of_the_program_stay_in_the_file(source: Path, rank: RankProcess) -> None:
    assert "hunter2" not in repr(annotate_stacks([stacked(*(frame(source, line) for line in range(6)))], [rank]))


@pytest.mark.parametrize(
    "path", ["train.py", "<string>", "<frozen importlib>", "/lib/libc.so.6", "/a/lib/python3.11/ast.py", ""]
)
def test_what_is_not_training_code_is_not_read(path: str, rank: RankProcess) -> None:
    evidence = [
        stacked(frame(path)),
        stacked(frame("/nowhere/x.py"), child="pt_data_worker"),
        stacked(frame("/nowhere/x.py"), rank=7),
    ]
    assert annotate_stacks(evidence, [rank], command=["/nowhere/python"]) == evidence


def test_source_that_changed_since_the_start_is_not_believed(source: Path, rank: RankProcess) -> None:
    source.write_text(PROGRAM + "\n")
    assert contexts(annotate_stacks([stacked(frame(source))], [rank])[0]) == [None]


def test_old_file_moved_into_place_since_the_start_is_not_believed(tmp_path: Path, source: Path, rank: RankProcess) -> None:
    other = tmp_path / "other.py"
    other.write_text(PROGRAM)
    os.utime(other, (1, 1))
    other.rename(source)
    seen = stacked(frame(source))
    assert annotate_stacks([seen], [rank]) == [seen]


def test_source_behind_a_link_is_read(tmp_path: Path, source: Path, rank: RankProcess) -> None:
    folder = tmp_path / "link"
    folder.symlink_to(tmp_path)
    (tmp_path / "also.py").symlink_to(source)
    assert contexts(annotate_stacks([stacked(frame(folder / "also.py"))], [rank])[0]) == [STEP]


def test_traps_cost_one_absence_and_none_of_the_others(tmp_path: Path, source: Path, rank: RankProcess) -> None:
    os.mkfifo(tmp_path / "fifo.py")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "broken.py").write_text("def hunter2(:")
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "huge.py").write_bytes(b"x" * (4 * 1024**2 + 1))
    (tmp_path / "codec.py").write_bytes(b"# -*- coding: hunter2 -*-\nx()\n")
    (tmp_path / "dots.py").write_text("a" + ".b" * 500_000)
    (tmp_path / "loop.py").symlink_to("loop.py")
    (tmp_path / "device.py").symlink_to("/dev/zero")
    (tmp_path / "kernel.py").symlink_to("/proc/self/environ")
    traps = ["fifo", "folder", "broken", "binary", "huge", "codec", "dots", "loop", "device", "kernel", "missing"]
    seen = stacked(*(frame(tmp_path / f"{name}.py", 1) for name in traps), frame(source))
    found, absence = annotate_stacks([seen], [rank], within_s=30.0)
    assert contexts(found) == [*[None] * len(traps), STEP]
    ((reason, detail),) = reasons([absence])
    assert reason is AbsenceReason.UNREADABLE
    assert "fifo.py: not a regular file" in detail
    assert "and 8 more files" in detail
    assert "hunter2" not in detail
    assert (absence.source, absence.rank, absence.host) == (CollectorName.STACKS, None, "node1")


def test_reading_a_fifo_does_not_wake_its_writer(tmp_path: Path, rank: RankProcess) -> None:
    os.mkfifo(tmp_path / "fifo.py")
    with running(python(f"open({str(tmp_path / 'fifo.py')!r}, 'w').write('x')")) as pid:
        time.sleep(0.3)
        annotate_stacks([stacked(frame(tmp_path / "fifo.py"))], [rank])
        time.sleep(0.2)
        assert "State:\tS" in Path(f"/proc/{pid}/status").read_text()


def test_dead_mount_costs_its_deadline_and_its_files(tmp_path: Path, source: Path, rank: RankProcess) -> None:
    (tmp_path / "trap.py").write_text(PROGRAM)
    seen = stacked(frame(tmp_path / "trap.py"), frame(source))
    start_s = time.monotonic()
    found, absence = annotate_stacks([seen], [rank], within_s=2, command=stuck())
    assert time.monotonic() - start_s < 3
    assert contexts(found) == [None, STEP]
    ((reason, detail),) = reasons([absence])
    assert reason is AbsenceReason.TIMED_OUT
    assert "trap.py" in detail


def test_many_dead_files_never_take_longer_than_all_may(tmp_path: Path, rank: RankProcess) -> None:
    seen = stacked(*(frame(tmp_path / f"{number}trap.py") for number in range(20)))
    start_s = time.monotonic()
    found, absence = annotate_stacks([seen], [rank], within_s=1, command=stuck())
    assert time.monotonic() - start_s < 2
    assert contexts(found) == [None] * 20
    assert [reason for reason, _ in reasons([absence])] == [AbsenceReason.TIMED_OUT]


def test_time_for_all_ends_a_reader_that_would_wait_longer_for_one(tmp_path: Path) -> None:
    task = Task(request=SourceRequest(path=bytes(tmp_path / "trap.py"), lines=(1,)), path="x")
    start_s = time.monotonic()
    with Reader(deadline_s=30, command=stuck()) as reader:
        answer = reader.ask([task], within_s=0.5)["x"]
        assert reader.pids == ()
    assert time.monotonic() - start_s < 2
    assert isinstance(answer, FileRead)
    assert answer.problem is not None
    assert answer.problem.reason is AbsenceReason.TIMED_OUT


def test_sources_of_a_rank_in_another_mount_namespace_are_read_below_its_root(source: Path, rank: RankProcess) -> None:
    away = identify(rank.pid, 1, is_at_home=False)
    gone = replace(away, rank=2, pid=2**22 + 1)
    stacks = [stacked(frame(source)), stacked(frame(source), rank=1), stacked(frame(source), rank=2)]
    found, other, lost, absence = annotate_stacks(stacks, [rank, away, gone])
    assert contexts(found) == contexts(other) == [STEP]
    assert contexts(lost) == [None]
    assert [reason for reason, _ in reasons([absence])] == [AbsenceReason.GONE]


def test_more_files_than_are_read_are_said(tmp_path: Path, rank: RankProcess) -> None:
    for number in range(MOST_FILES + 2):
        (tmp_path / f"{number}.py").write_text("f()")
    seen = stacked(*(frame(tmp_path / f"{number}.py", 9) for number in range(MOST_FILES + 2)))
    found = annotate_stacks([seen], [rank])
    assert [reason for reason, _ in reasons(found)] == [AbsenceReason.SKIPPED]
    assert "2 source files" in reasons(found)[0][1]


def test_names_that_are_no_paths_are_survived(rank: RankProcess) -> None:
    found = annotate_stacks(
        [stacked(frame("/a\0b.py"), frame("/" + "x" * 9000 + ".py"), frame("/\ud800.py"), frame("/x.py", 2**70))], [rank]
    )
    assert contexts(found[0]) == [None] * 4


def test_eight_ranks_are_annotated_in_a_moment(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.py").write_text(PROGRAM * 300)
    time.sleep(0.05)
    with running(python()) as pid:
        ranks = [identify(pid, number) for number in range(8)]
        frames = [frame(tmp_path / f"{name}.py", line) for name in "abc" for line in (3, 7)]
        evidence = [stacked(*frames, rank=number) for number in range(8)]
        start_s = time.monotonic()
        found = annotate_stacks(evidence, ranks)
        assert time.monotonic() - start_s < 2
    assert all(context is not None for item in found for context in contexts(item))


# As a service does that may not become somebody else: root, with the right to read everything, and no other.
HARDENED = ("setpriv", "--bounding-set=-all,+dac_read_search,+sys_ptrace", "--inh-caps=-all")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can read more than the rank's user")
@pytest.mark.parametrize("wrapper", [(), HARDENED], ids=["root", "hardened"])
def test_root_reads_no_source_that_the_rank_s_user_could_not_read(open_folder: Path, wrapper: tuple[str, ...]) -> None:
    """He has chosen the path: a frame can be called anything."""
    closed = open_folder / "closed"
    closed.mkdir(mode=0o700)
    secret, shared, hidden = open_folder / "secret.py", open_folder / "shared.py", closed / "hidden.py"
    for path, group, mode in ((secret, 0, 0o640), (shared, 4242, 0o640), (hidden, 0, 0o644)):
        path.write_text(PROGRAM)
        os.chown(path, 0, group)
        path.chmod(mode)
    time.sleep(0.05)
    as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--groups=4242", "sleep", "60"]
    with running(as_user) as pid:
        time.sleep(0.1)
        rank = replace(identify(pid), uid=65534)
        evidence = [stacked(frame(secret), frame(shared), frame(hidden))]
        seen = annotate_stacks(evidence, [rank], command=[*wrapper, *reader_command()])
    assert contexts(seen[0]) == [None, STEP, None]
    ((reason, detail),) = reasons(seen)
    assert reason is AbsenceReason.DENIED
    assert f"{secret}: " in detail
    assert f"{hidden}: " in detail
