"""What the last files of ranks say, whole and hostile ones."""

import os
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from pardbg.collectors.ended.look import evidence_of, read_run
from pardbg.collectors.probe.page_format import END_AT_ONCE, END_EXCEPTION, END_RETURNED
from pardbg.collectors.probe.places import ENDED_STACKS, FATAL_STACKS
from pardbg.watchdog.model.evidence import Absence, Evidence, FlightRecording, JobDescription, Stack
from pardbg.watchdog.model.heartbeat import Ending, EndingKind, Heartbeat
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from tests.collectors.dumps import make_dump, make_entry, pickled
from tests.collectors.ended.folders import Left
from tests.collectors.ended.test_runs import runs_in
from tests.collectors.probe_pages import ending

STACK = 'Current thread 0x00007f57629e7b80 (most recent call first):\n  File "/app/train.py", line 12 in load\n'
OLDER = 'Current thread 0x00007f57629e7b80 (most recent call first):\n  File "/app/train.py", line 3 in main\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


def evidence_in(root: Path) -> list[Evidence]:
    (run,) = runs_in(root)
    found = read_run(run)
    return [found.describe("job"), *evidence_of(found, run)]


def ending_in(root: Path) -> Ending | None:
    (beat,) = (item.observation for item in evidence_in(root) if isinstance(item.observation, Heartbeat))
    return beat.ending


def absences_in(root: Path) -> list[AbsenceReason]:
    return [item.observation.reason for item in evidence_in(root) if isinstance(item.observation, Absence)]


def now() -> int:
    return time.time_ns() - 40 * 10**9


def test_job_is_described_with_all_its_ranks_gone(root: Path) -> None:
    left = Left(root)
    left.add(0, ending(END_RETURNED, code=0, at_ns=now()))
    left.add(1, ending(END_AT_ONCE, code=7, at_ns=now()))
    (job,) = (item.observation for item in evidence_in(root) if isinstance(item.observation, JobDescription))

    assert [(rank.rank, rank.host, rank.state, rank.exit_code) for rank in job.ranks] == [
        (0, "node1", "gone", 0),
        (1, "node1", "gone", 7),
    ]
    assert (job.job, job.world, job.world_size, job.attempt) == ("job", "127.0.0.1:29500", 2, 0)


def test_exception_is_the_last_word(root: Path) -> None:
    Left(root).add(0, ending(END_EXCEPTION, b"ValueError: bad record", code=1, at_ns=now()))
    found = ending_in(root)

    assert found is not None
    assert (found.kind, found.text, found.where) == (EndingKind.EXCEPTION, "ValueError: bad record", "/app/train.py:7 step")
    assert not found.is_consequence


def test_no_word_is_none(root: Path) -> None:
    Left(root).add(0)

    assert ending_in(root) is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Segmentation fault", -11),
        ("Aborted", -6),
        ("Bus error", -7),
        ("Floating-point exception", -8),
        ("Illegal instruction", -4),
        ("none_dealloc: deallocating None", -6),
    ],
)
def test_fatal_signal_is_told_by_faulthandler(root: Path, text: str, code: int) -> None:
    folder = Left(root).add(0)
    (folder / FATAL_STACKS).write_text(f"Fatal Python error: {text}\n\n{STACK}\nExtension modules: numpy (total: 1)\n")
    found = ending_in(root)

    assert found is not None
    assert (found.kind, found.code, found.where) == (EndingKind.SIGNAL, code, "/app/train.py:12 load")


def test_stacks_at_sigterm_are_a_stack_of_the_rank(root: Path) -> None:
    folder = Left(root).add(0)
    (folder / ENDED_STACKS).write_text(OLDER + STACK)
    stacks = [item.observation for item in evidence_in(root) if isinstance(item.observation, Stack)]
    found = ending_in(root)

    assert found is not None
    assert (found.kind, found.code) == (EndingKind.SIGNAL, -15)
    assert [stack.main_thread.frames[0].line for stack in stacks if stack.main_thread] == [12]


def test_empty_files_of_signals_did_not_happen(root: Path) -> None:
    folder = Left(root).add(0)
    (folder / ENDED_STACKS).touch()
    (folder / FATAL_STACKS).touch()

    assert ending_in(root) is None


@pytest.mark.parametrize(
    ("said_after_s", "kind"), [(-5.0, EndingKind.EXCEPTION), (1.0, EndingKind.SIGNAL), (90.0, EndingKind.EXCEPTION)]
)
def test_what_follows_from_sigterm_is_no_word_of_the_rank_itself(root: Path, said_after_s: float, kind: EndingKind) -> None:
    """An exception before it stays the reason, and so does one long after a signal that the program has outlived."""
    said_ns = time.time_ns() + int(said_after_s * 1e9)
    folder = Left(root).add(0, ending(END_EXCEPTION, b"ValueError: bad record", code=1, at_ns=said_ns))
    (folder / ENDED_STACKS).write_text(STACK)
    found = ending_in(root)

    assert found is not None
    assert found.kind is kind


def test_ctrl_c_is_a_signal(root: Path) -> None:
    Left(root).add(0, ending(END_EXCEPTION, b"KeyboardInterrupt", code=1, at_ns=now()))
    found = ending_in(root)

    assert found is not None
    assert (found.kind, found.code) == (EndingKind.SIGNAL, -2)


def test_dump_that_a_rank_has_left_is_its_recording_with_the_members_of_its_groups(root: Path) -> None:
    dump = root / "last_rank_0"
    dump.write_bytes(pickled(make_dump([make_entry(0)], pg_config={})))
    Left(root).add(0, last_dump=str(dump), dumps=str(root / "torch_rank_"))
    (recording,) = (item.observation.recording for item in evidence_in(root) if isinstance(item.observation, FlightRecording))

    assert [config.ranks for config in recording.configs] == [(0, 1)]


def test_newer_of_two_dumps_counts(root: Path) -> None:
    own, torchs = root / "last_rank_0", root / "torch_rank_0"
    own.write_bytes(pickled(make_dump([make_entry(0)])))
    torchs.write_bytes(pickled(make_dump([make_entry(0), make_entry(1)])))
    Left(root).add(0, last_dump=str(own), dumps=str(root / "torch_rank_"))
    os.utime(own, ns=(now(), now()))
    (item,) = (item for item in evidence_in(root) if isinstance(item.observation, FlightRecording))

    assert item.origin == str(torchs)


def test_dump_older_than_the_process_is_of_an_earlier_run(root: Path) -> None:
    dump = root / "torch_rank_0"
    dump.write_bytes(pickled(make_dump([make_entry(0)])))
    os.utime(dump, ns=(time.time_ns() - 200 * 10**9,) * 2)
    Left(root).add(0, dumps=str(root / "torch_rank_"))

    assert absences_in(root) == [AbsenceReason.GONE]


@pytest.mark.parametrize("kind", ["fifo", "link", "garbage", "foreign", "huge"])
def test_hostile_dump_is_an_absence(root: Path, kind: str) -> None:
    dump = root / "last_rank_0"
    if kind == "fifo":
        os.mkfifo(dump)
    elif kind == "link":
        (root / "secret").write_bytes(pickled(make_dump([make_entry(0)])))
        dump.symlink_to(root / "secret")
    elif kind == "huge":
        with dump.open("wb") as file:
            file.truncate(10**12)
    else:
        dump.write_bytes(b"\x80\x02garbage" if kind == "garbage" else pickled(make_dump([make_entry(0)])))
    if kind == "foreign":
        if os.geteuid() != 0:
            pytest.skip("gives a file to another user")
        os.chown(dump, 65534, 65534)
    Left(root).add(0, last_dump=str(dump))

    assert absences_in(root) in ([AbsenceReason.SKIPPED], [AbsenceReason.UNREADABLE])


def test_hostile_files_of_signals_are_left_alone(root: Path) -> None:
    folder = Left(root).add(0)
    os.mkfifo(folder / ENDED_STACKS)
    (folder / FATAL_STACKS).symlink_to("/etc/passwd")

    assert ending_in(root) is None


@pytest.mark.parametrize("cgroup", ["/etc", "/proc/self", "/sys/fs/cgroup/../../../etc", "relative", "/sys/fs/cgroup/gone"])
def test_no_other_folder_than_a_cgroup_is_looked_into(root: Path, cgroup: str) -> None:
    Left(root).add(0, cgroup=cgroup, oom_kills=0)
    (beat,) = (item.observation for item in evidence_in(root) if isinstance(item.observation, Heartbeat))

    assert (beat.oom_kills, beat.later_oom_kills) == (0, None)


def test_peers_of_one_cgroup_tell_that_somebody_was_killed_for_memory(root: Path) -> None:
    left = Left(root)
    left.add(0, cgroup="/sys/fs/cgroup/gone", oom_kills=3)
    left.add(1, ending(END_EXCEPTION, b"RuntimeError: x", at_ns=now(), oom_kills=4), cgroup="/sys/fs/cgroup/gone/", oom_kills=3)
    beats = [item.observation for item in evidence_in(root) if isinstance(item.observation, Heartbeat)]

    assert [(beat.oom_kills, beat.later_oom_kills) for beat in beats] == [(3, 4), (3, 4)]


def test_child_that_is_no_member_and_left_no_word_is_no_silent_rank(root: Path) -> None:
    Left(root).add(0, is_member=False)

    assert not any(isinstance(item.observation, Heartbeat) for item in evidence_in(root))


def test_reader_that_gives_no_answer_becomes_an_absence(root: Path) -> None:
    Left(root).add(0)
    (run,) = runs_in(root)
    found = read_run(run, command=["false"])
    (item, *_) = evidence_of(found, replace(run))

    assert any(isinstance(item.observation, Absence) and item.source is CollectorName.HOST for item in evidence_of(found, run))
    assert item.rank == 0
