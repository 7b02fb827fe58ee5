"""The dump pipe of NCCL, with a stand-in for torch's monitor thread."""

import os
import time
from pathlib import Path

import pytest

from pardbg.watchdog.model.names import AbsenceReason
from tests.collectors.live.recorder_worlds import absence_of, reach_one, recording_of, running, state_of


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": str(tmp_path / "pipe_"),
        "TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "dump_"),
        "HOME": str(tmp_path),
    }


def arguments(environment: dict[str, str], manner: str, poll_s: float = 0.3) -> list[str]:
    stem, prefix = environment["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"], environment["TORCH_FR_DUMP_TEMP_FILE"]
    return ["recorder_monitor.py", stem, prefix, "0", manner, str(poll_s)]


def times_asked(tmp_path: Path) -> int:
    path = tmp_path / "pipe_0.asked"
    return int(path.read_text()) if path.exists() else 0


def test_a_dump_that_is_asked_for_is_read_when_it_is_whole(tmp_path: Path, environment: dict[str, str]) -> None:
    with running(*arguments(environment, "slowly", poll_s=1.0)) as pid:
        began = time.monotonic()
        recording = recording_of(reach_one(pid, environment))
        assert len(recording.operations) == 200
        assert recording.damage == ""
        assert time.monotonic() - began < 2.5
        assert len(recording_of(reach_one(pid, environment)).operations) == 201
        assert times_asked(tmp_path) == 2


def test_a_dump_that_this_sample_has_already_is_not_asked_for_again(tmp_path: Path, environment: dict[str, str]) -> None:
    with running(*arguments(environment, "slowly")) as pid:
        began_at = time.time()
        for _ in range(2):
            assert len(recording_of(reach_one(pid, environment, began_at=began_at)).operations) == 200
        assert times_asked(tmp_path) == 1


def test_where_no_dump_comes_the_wait_ends_with_the_deadline(environment: dict[str, str]) -> None:
    with running(*arguments(environment, "never")) as pid:
        began = time.monotonic()
        reason, detail = absence_of(reach_one(pid, environment, deadline_s=1.5))
        assert reason is AbsenceReason.TIMED_OUT
        assert "pipe" in detail
        assert time.monotonic() - began < 2.0


def test_a_stopped_rank_is_not_asked(tmp_path: Path, environment: dict[str, str]) -> None:
    with running(*arguments(environment, "slowly")) as pid:
        os.kill(pid, 19)
        while state_of(pid) != "T":
            time.sleep(0.01)
        reason, detail = absence_of(reach_one(pid, environment, deadline_s=1.5))
        assert reason is AbsenceReason.UNREACHABLE
        assert "stopped" in detail
        os.kill(pid, 18)
        time.sleep(0.8)
        assert times_asked(tmp_path) == 0


def test_a_pipe_that_the_rank_itself_does_not_read_is_not_written_to(tmp_path: Path, environment: dict[str, str]) -> None:
    with running(*arguments(environment, "slowly")):
        reason, detail = absence_of(reach_one(os.getpid(), environment, deadline_s=1.5))
        assert reason is AbsenceReason.UNREACHABLE
        assert "nobody reads" in detail
        time.sleep(0.5)
        assert times_asked(tmp_path) == 0


@pytest.mark.parametrize("variable", ["TORCH_NCCL_DUMP_ON_TIMEOUT=0", "TORCH_FR_DUMP_DYNAMIC_FILE_NAME=1"])
def test_a_monitor_that_would_not_answer_in_time_is_not_asked(
    tmp_path: Path, environment: dict[str, str], variable: str
) -> None:
    name, _, value = variable.partition("=")
    with running(*arguments(environment, "slowly")) as pid:
        assert name in absence_of(reach_one(pid, {**environment, name: value}))[1]
        assert times_asked(tmp_path) == 0


@pytest.mark.parametrize("kind", ["file", "link", "nothing"])
def test_what_is_no_pipe_is_not_written_to(tmp_path: Path, environment: dict[str, str], kind: str) -> None:
    place, other = tmp_path / "pipe_0.pipe", tmp_path / "other"
    other.write_text("untouched")
    if kind == "file":
        place.write_text("untouched")
    elif kind == "link":
        place.symlink_to(other)
    reason, _ = absence_of(reach_one(os.getpid(), environment, deadline_s=1.5))
    assert reason is (AbsenceReason.UNREACHABLE if kind == "nothing" else AbsenceReason.SKIPPED)
    assert other.read_text() == "untouched"
    assert kind == "nothing" or place.read_text() == "untouched"
