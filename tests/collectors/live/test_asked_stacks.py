"""Stacks that ranks write themselves where nobody may look into them: a stand-in with a probe answers, or is signalled."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pardbg.collectors.live.probe.asked_stacks import AskedStacks, Mute, ask_where_refused
from pardbg.watchdog.model.evidence import Absence, Evidence, Stack
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.world import RankProcess
from tests.collectors.live.recorder_worlds import running, started_ticks, state_of

REFUSED = Absence(reason=AbsenceReason.DENIED, detail="not for us")


@contextmanager
def probed(root: Path, *manner: str, **environment: str) -> Iterator[RankProcess]:
    """A process with a probe that rests or runs, and whose server answers so."""
    paths = {"PYTHONPATH": str(Path(__file__).parents[3] / "src")}
    with running("probe_rank.py", str(root), *manner, env=paths) as pid:
        recorder = {"PARDBG_DIR": str(root), **environment}
        yield RankProcess(rank=0, pid=pid, started_ticks=started_ticks(pid), host="here", uid=os.getuid(), recorder=recorder)


def ask(rank: RankProcess, mute: frozenset[Mute] = frozenset()) -> AskedStacks:
    refused = Evidence(source=CollectorName.STACKS, rank=rank.rank, observation=REFUSED, origin="py-spy")
    return ask_where_refused([refused], [rank], 1, mute)


def main_functions(asked: AskedStacks) -> list[str]:
    (item,) = asked.evidence
    assert isinstance(item.observation, Stack), item.observation
    assert item.observation.main_thread is not None
    return [frame.name for frame in item.observation.main_thread.frames]


def questions(root: Path) -> list[str]:
    (path,) = root.glob("*/asked")
    return path.read_text().splitlines()


def detail(asked: AskedStacks) -> str:
    (item,) = asked.evidence
    assert isinstance(item.observation, Absence), item.observation
    return item.observation.detail


def test_worker_server_is_asked_and_its_stack_replaces_the_absence(tmp_path: Path) -> None:
    with probed(tmp_path, "rests", "well") as rank:
        asked = ask(rank)

    assert main_functions(asked) == ["wait_here", "<module>"]
    (item,) = asked.evidence
    assert isinstance(item.observation, Stack)
    assert (item.observation.sample, item.observation.pid) == (1, rank.pid)
    assert (item.observation.tells_lock, item.observation.is_lock_held) == (False, False)
    assert asked.refused == {0}
    assert not asked.mute


def test_rank_that_does_not_answer_is_signalled_and_not_asked_again(tmp_path: Path) -> None:
    with probed(tmp_path, "rests", "mute") as rank:
        first = ask(rank)
        again = ask(rank, first.mute)
        asked = questions(tmp_path)
        state = state_of(rank.pid)

    assert main_functions(first) == main_functions(again) == ["wait_here", "<module>"]
    assert first.mute == again.mute == {(rank.pid, rank.started_ticks)}
    assert asked == ["POST /handler/dump_traceback"]
    assert state == "S"


def test_lock_that_is_held_is_told_even_where_no_frames_can_be_had(tmp_path: Path) -> None:
    with probed(tmp_path, "runs", "held") as rank:
        absence, lock = ask(rank).evidence

    assert isinstance(absence.observation, Absence)
    assert isinstance(lock.observation, Stack)
    assert (lock.observation.is_lock_held, lock.observation.threads[0].frames) == (True, ())


def test_main_thread_that_runs_is_not_disturbed(tmp_path: Path) -> None:
    with probed(tmp_path, "runs", "mute") as rank:
        assert "its main thread runs" in detail(ask(rank))
        assert _asked_stacks(tmp_path) == b""


def test_signal_that_nobody_catches_is_never_sent(tmp_path: Path) -> None:
    with probed(tmp_path, "rests", "mute", "uncaught") as rank:
        assert "does not catch" in detail(ask(rank))
        assert state_of(rank.pid) == "S"


def test_without_a_thread_of_the_worker_server_no_signal_is_sent(tmp_path: Path) -> None:
    with probed(tmp_path, "rests", "never") as rank:
        assert "no thread" in detail(ask(rank))
        assert _asked_stacks(tmp_path) == b""


def test_pardbg_attach_never_forbids_the_signal(tmp_path: Path) -> None:
    with probed(tmp_path, "rests", "mute", PARDBG_ATTACH="never") as rank:
        assert "PARDBG_ATTACH" in detail(ask(rank))
        assert _asked_stacks(tmp_path) == b""


@pytest.mark.parametrize("place", ["folder", "file"])
def test_folder_or_file_that_may_not_be_believed_is_not_used(tmp_path: Path, place: str) -> None:
    with probed(tmp_path, "rests", "mute") as rank:
        (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
        if place == "folder":
            folder.chmod(0o755)
        else:
            os.chown(folder / "stacks-asked.txt", 65534, 65534)
        assert isinstance(ask(rank).evidence[0].observation, Absence)
        assert _asked_stacks(tmp_path) == b""


def test_process_of_another_start_time_is_left_alone(tmp_path: Path) -> None:
    with probed(tmp_path, "rests", "well") as rank:
        other = RankProcess(rank=0, pid=rank.pid, started_ticks=rank.started_ticks + 1, host="here", recorder=rank.recorder)
        assert detail(ask(other)) == REFUSED.detail
        assert questions(tmp_path) == []


def test_ranks_that_py_spy_could_look_into_are_not_asked(tmp_path: Path) -> None:
    with probed(tmp_path, "rests", "well") as rank:
        assert ask_where_refused([], [rank], 0) == AskedStacks(())
        timed_out = Absence(reason=AbsenceReason.TIMED_OUT, detail="too slow")
        late = Evidence(source=CollectorName.STACKS, rank=0, observation=timed_out, origin="py-spy")
        assert ask_where_refused([late], [rank], 0).evidence == (late,)
        assert questions(tmp_path) == []


def _asked_stacks(root: Path) -> bytes:
    (path,) = root.glob("*/stacks-asked.txt")
    return path.read_bytes()
