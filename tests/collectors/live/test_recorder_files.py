"""Dump files in the places that a rank's environment names: believed, dated, or refused."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pardbg.collectors.live.recorders.reach import reach_recorders
from pardbg.watchdog.model.evidence import FlightRecording
from pardbg.watchdog.model.names import AbsenceReason
from tests.collectors.dumps import make_dump, make_entry, pickled
from tests.collectors.live.recorder_worlds import absence_of, reach_one, recording_of, world_of
from tests.own_children import are_soon_gone, living_children

ME = os.getpid()
IDENT = threading.get_ident()


def own_dump(count: int = 3, **changes: object) -> bytes:
    """A dump that this very process could have written."""
    return pickled(make_dump(make_entry(number, **{"thread_id": str(IDENT), **changes}) for number in range(count)))


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "dump_"), "HOME": str(tmp_path)}


def test_a_fresh_dump_is_read_and_dated_with_its_own_time(tmp_path: Path, environment: dict[str, str]) -> None:
    path = tmp_path / "dump_0"
    path.write_bytes(own_dump())
    written = time.time() - 0.25
    os.utime(path, (written, written))
    evidence = reach_one(ME, environment)
    assert len(recording_of(evidence).operations) == 3
    assert evidence.origin == str(path)
    assert evidence.observed_at is not None
    assert evidence.observed_at.startswith(time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(written)))


def test_a_dump_from_before_the_process_started_is_not_its_own(tmp_path: Path, environment: dict[str, str]) -> None:
    path = tmp_path / "dump_0"
    path.write_bytes(own_dump())
    os.utime(path, (1_700_000_000, 1_700_000_000))
    reason, detail = absence_of(reach_one(ME, environment))
    assert reason is AbsenceReason.UNREACHABLE
    assert "no dump file" in detail


def test_a_dump_of_another_job_with_the_same_name_is_refused(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "dump_0").write_bytes(own_dump(thread_id="4096"))
    reason, detail = absence_of(reach_one(ME, environment))
    assert reason is AbsenceReason.UNREACHABLE
    assert "another process" in detail


def test_an_unsigned_dump_counts_where_it_is_named_but_not_under_the_shared_default(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "dump_0").write_bytes(own_dump(thread_id=...))
    assert len(recording_of(reach_one(ME, environment)).operations) == 3
    default = tmp_path / ".cache/torch/comm_lib_trace_rank_0"
    default.parent.mkdir(parents=True)
    default.write_bytes(own_dump(thread_id=...))
    reason, detail = absence_of(reach_one(ME, {"HOME": str(tmp_path)}))
    assert reason is AbsenceReason.UNREACHABLE
    assert "does not show which job" in detail
    default.write_bytes(own_dump())
    assert reach_one(ME, {"HOME": str(tmp_path)}).origin == str(default)


def test_a_fifo_named_like_a_dump_is_not_opened(tmp_path: Path, environment: dict[str, str]) -> None:
    os.mkfifo(tmp_path / "dump_0")
    began = time.monotonic()
    writer = subprocess.Popen([sys.executable, "-c", f"open({str(tmp_path / 'dump_0')!r}, 'w')"])
    try:
        reason, detail = absence_of(reach_one(ME, environment))
        assert reason is AbsenceReason.SKIPPED
        assert "a FIFO" in detail
        assert time.monotonic() - began < 3
        assert writer.poll() is None  # it would have gone on if anybody had opened the other end
    finally:
        writer.kill()
        writer.wait()


def test_a_link_named_like_a_dump_is_not_followed(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "elsewhere").write_bytes(own_dump())
    (tmp_path / "dump_0").symlink_to(tmp_path / "elsewhere")
    reason, detail = absence_of(reach_one(ME, environment))
    assert reason is AbsenceReason.SKIPPED
    assert "a link" in detail


def test_a_dump_of_another_user_is_not_opened(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "dump_0").write_bytes(own_dump())
    world = world_of([ME], [environment], uid=os.getuid() + 1)
    (evidence,) = reach_recorders(world, 0, 5.0, time.time())
    assert absence_of(evidence)[0] is AbsenceReason.SKIPPED


def test_a_folder_that_leads_into_proc_is_not_entered(tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to(f"/proc/{ME}/fd")
    reason, detail = absence_of(reach_one(ME, {"TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "way") + "/"}))
    assert reason is AbsenceReason.SKIPPED
    assert "/proc" in detail


def test_a_planted_pickle_is_not_executed(tmp_path: Path, environment: dict[str, str]) -> None:
    mark = tmp_path / "executed"
    (tmp_path / "dump_0").write_bytes(b"cos\nsystem\n(S'touch " + str(mark).encode() + b"'\ntR.")
    assert absence_of(reach_one(ME, environment))[0] is AbsenceReason.UNREADABLE
    assert not mark.exists()


def test_an_empty_dump_and_one_of_a_recorder_that_is_off_are_absences(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "dump_0").write_bytes(b"")
    assert absence_of(reach_one(ME, environment, deadline_s=1.0))[0] is AbsenceReason.EMPTY
    (tmp_path / "dump_0").write_bytes(json.dumps(make_dump([], pg_config={})).encode())
    assert absence_of(reach_one(ME, environment, deadline_s=1.0))[0] is AbsenceReason.EMPTY


def test_a_dump_that_is_being_written_gets_a_moment(tmp_path: Path, environment: dict[str, str]) -> None:
    data = own_dump(500)
    path = tmp_path / "dump_0"
    path.write_bytes(data[: len(data) // 2])

    def finish() -> None:
        with path.open("ab") as file:
            file.write(data[len(data) // 2 :])

    timer = threading.Timer(0.5, finish)
    timer.start()
    recording = recording_of(reach_one(ME, environment))
    timer.join()
    assert len(recording.operations) == 500
    assert recording.damage == ""


def test_a_damaged_dump_that_stays_so_gives_its_whole_entries(tmp_path: Path, environment: dict[str, str]) -> None:
    data = own_dump(500)
    (tmp_path / "dump_0").write_bytes(data[: len(data) // 2])
    recording = recording_of(reach_one(ME, environment))
    assert 0 < len(recording.operations) < 500
    assert recording.damage


def test_a_recorder_that_the_environment_switches_off_is_said_to_be_off(environment: dict[str, str]) -> None:
    reason, detail = absence_of(reach_one(ME, {**environment, "TORCH_FR_BUFFER_SIZE": "0"}))
    assert reason is AbsenceReason.SWITCHED_OFF
    assert "pardbg run" in detail


def test_a_process_that_has_ended_is_gone_also_if_its_number_lives_on(environment: dict[str, str]) -> None:
    world = world_of([ME], [environment])
    ended = (type(world.ranks[0])(rank=0, pid=ME, started_ticks=1, host="here"),)
    (evidence,) = reach_recorders(type(world)(world_size=1, ranks=ended), 0, 5.0, time.time())
    assert absence_of(evidence)[0] is AbsenceReason.GONE


def test_dumps_of_another_mount_namespace_are_read_below_its_root_and_its_pipe_is_not_written_to(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "dump_0").write_bytes(own_dump())
    away = world_of([ME], [environment | {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE": str(tmp_path / "pipe_")}], is_at_home=False)
    (evidence,) = reach_recorders(away, 0, 5.0, time.time())
    assert isinstance(evidence.observation, FlightRecording)
    (tmp_path / "dump_0").unlink()
    (evidence,) = reach_recorders(away, 0, 5.0, time.time())
    assert absence_of(evidence)[0] is AbsenceReason.UNREACHABLE
    assert "mount namespace" in absence_of(evidence)[1]


def test_every_rank_has_its_answer_in_the_order_of_the_ranks(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "dump_1").write_bytes(own_dump())
    evidence = reach_recorders(world_of([ME] * 3, [environment] * 3), 7, 5.0, time.time())
    assert [item.rank for item in evidence] == [0, 1, 2]
    assert [type(item.observation).__name__ for item in evidence] == ["Absence", "FlightRecording", "Absence"]
    assert getattr(evidence[1].observation, "sample", None) == 7
    assert reach_recorders(world_of([], []), 0, 5.0, time.time()) == []


def test_a_child_that_does_not_answer_is_abandoned_at_the_deadline(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "dump_1").write_bytes(own_dump())
    before, began = living_children(), time.monotonic()
    evidence = reach_recorders(world_of([ME] * 2, [environment] * 2), 0, 0.01, time.time())
    assert [absence_of(item)[0] for item in evidence] == [AbsenceReason.TIMED_OUT] * 2
    assert time.monotonic() - began < 3
    assert are_soon_gone(before)


def test_a_value_that_is_no_text_does_no_harm(tmp_path: Path) -> None:
    reason, _ = absence_of(reach_one(ME, {"TORCH_FR_DUMP_TEMP_FILE": str(tmp_path) + "/\udcff", "HOME": "/none"}))
    assert reason is AbsenceReason.UNREACHABLE
