"""From paths to evidence: ranks, hosts, samples, duplicates, traps."""

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from pardbg.collectors.files import CollectedFiles, collect_files
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.evidence import Absence, Evidence, FlightRecording, JobDescription, LogTraceback, Stack
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from tests.collectors.dumps import make_dump, make_entry, pickled

OWN = 'Traceback (most recent call last):\n  File "/a.py", line 1, in f\nValueError: x\n'
THREADS = json.dumps([{"frames": [], "thread_id": 1, "active": True, "owns_gil": False}])


def write(path: Path, content: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def dump(*numbers: int, **changes: Any) -> bytes:
    return pickled(make_dump([make_entry(number) for number in numbers], **changes))


def absences(collected: CollectedFiles) -> dict[str, AbsenceReason]:
    found = ((item.origin.rsplit("/", 1)[-1], item.observation) for item in collected.evidence)
    return {name: observation.reason for name, observation in found if isinstance(observation, Absence)}


def only(collected: CollectedFiles) -> Evidence:
    (item,) = collected.evidence
    return item


def test_folder_is_walked_and_sorted(tmp_path: Path) -> None:
    write(tmp_path / "b" / "nccl_trace_rank_1", dump(0))
    write(tmp_path / "a" / "nccl_trace_rank_0", dump(0, 1))
    write(tmp_path / "README.md", "hello")
    words: list[str] = []
    collected = collect_files([tmp_path], words.append)
    assert [(item.rank, item.source) for item in collected.evidence] == [(n, CollectorName.FLIGHT_RECORDER) for n in (0, 1)]
    assert collected.unrecognised == (str(tmp_path / "README.md"),)
    assert words == ["read 3 of 3 files"]


def test_evidence_has_the_time_of_its_file(tmp_path: Path) -> None:
    path = write(tmp_path / "rank_3", dump(0))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    item = only(collect_files([path]))
    assert (item.observed_at, item.origin) == ("2023-11-14T22:13:20Z", str(path))


def test_job_fills_in_host_and_process(tmp_path: Path) -> None:
    job = {"job": "7", "world_size": 1, "ranks": [{"rank": 3, "host": "node7", "pid": 99}]}
    write(tmp_path / "job.json", json.dumps(job))
    write(tmp_path / "stack_rank_3.json", THREADS)
    described, stack = collect_files([tmp_path]).evidence
    assert isinstance(described.observation, JobDescription)
    assert isinstance(stack.observation, Stack)
    assert (stack.rank, stack.host, stack.observation.pid) == (3, "node7", 99)


@pytest.mark.parametrize(("host", "rank"), [("a", 4), ("b", 6), ("c", None)])
def test_local_rank_becomes_global_through_the_job(host: str, rank: int | None, tmp_path: Path) -> None:
    ranks = [{"rank": 4, "host": "a", "local_rank": 0}, {"rank": 6, "host": "b", "local_rank": 0}]
    write(tmp_path / "job.json", json.dumps({"ranks": ranks}))
    write(tmp_path / host / "0" / "stderr.log", OWN)
    assert [item.rank for item in collect_files([tmp_path]).evidence if isinstance(item.observation, LogTraceback)] == [rank]


def test_local_rank_is_global_on_one_host(tmp_path: Path) -> None:
    write(tmp_path / "attempt_0" / "0" / "stderr.log", "")
    write(tmp_path / "attempt_0" / "1" / "stderr.log", OWN)
    assert only(collect_files([tmp_path])).rank == 1


def test_local_rank_is_nobodys_where_there_are_more_ranks(tmp_path: Path) -> None:
    write(tmp_path / "logs" / "1" / "stderr.log", OWN)
    write(tmp_path / "nccl_trace_rank_9", dump(0))
    assert {item.source: item.rank for item in collect_files([tmp_path]).evidence} == {
        CollectorName.RANK_LOG: None,
        CollectorName.FLIGHT_RECORDER: 9,
    }


def test_logs_of_an_earlier_attempt_are_set_aside(tmp_path: Path) -> None:
    write(tmp_path / "attempt_0" / "0" / "stderr.log", OWN)
    write(tmp_path / "attempt_1" / "0" / "stderr.log", OWN)
    old, new = collect_files([tmp_path]).evidence
    assert isinstance(old.observation, Absence)
    assert (old.rank, old.observation.reason) == (None, AbsenceReason.SKIPPED)
    assert isinstance(new.observation, LogTraceback)


def test_lines_of_a_shared_log_go_to_those_who_sign_them(tmp_path: Path) -> None:
    signed = "".join(f"[rank5]: {line}\n" for line in OWN.splitlines())
    write(tmp_path / "node7.log", "[rank4]: fine\n" + signed + OWN)
    assert sorted((item.rank is None, item.rank) for item in collect_files([tmp_path]).evidence) == [(False, 5), (True, None)]


def test_log_signed_by_one_rank_is_that_ranks(tmp_path: Path) -> None:
    write(tmp_path / "train.log", "[rank5]: fine\n" + OWN)
    assert only(collect_files([tmp_path])).rank == 5


@pytest.mark.parametrize(
    ("name", "lines", "rank"),
    [
        ("run-4711.log", OWN, None),  # no rank of a world of four
        ("run-4711.log", "[rank2]: fine\n" + OWN, 2),
        ("node_3.log", "[rank2]: fine\n" + OWN, 2),  # who signs knows better
        ("log_3.txt", OWN, 3),
        ("node_3.log", "[default0]:a\n[default1]:a\n" + OWN, None),
        ("node_3.log", "[default0]:a\n[default1]:a\n[rank2]: fine\n" + OWN, None),
        ("node_3.log", "[default1]:a\n" + OWN, 3),
        ("rank_3.log", "[default0]:a\n[default1]:a\n" + OWN, 3),  # a name that says so stays
    ],
)
def test_last_number_of_a_name_is_a_rank_only_if_the_world_and_the_lines_allow_it(
    name: str, lines: str, rank: int | None, tmp_path: Path
) -> None:
    write(tmp_path / "job.json", '{"job": "j", "world_size": 4, "ranks": []}')
    write(tmp_path / name, lines)
    found = [item.rank for item in collect_files([tmp_path]).evidence if isinstance(item.observation, LogTraceback)]
    assert found == [rank]


def test_samples_stay_side_by_side(tmp_path: Path) -> None:
    write(tmp_path / "s0" / "rank_3.json", THREADS)
    write(tmp_path / "s1" / "rank_3.json", THREADS)
    write(tmp_path / "dump_3_s0", dump(0))
    write(tmp_path / "dump_3_s1", dump(0))
    observations = [item.observation for item in collect_files([tmp_path]).evidence]
    assert [type(item).__name__ for item in observations] == ["FlightRecording", "FlightRecording", "Stack", "Stack"]
    assert [item.sample for item in observations if isinstance(item, FlightRecording | Stack)] == [0, 1, 0, 1]


def test_of_two_dumps_of_one_rank_the_newest_stays(tmp_path: Path) -> None:
    write(tmp_path / "new" / "nccl_trace_rank_3", dump(0, 1, 2))
    write(tmp_path / "old" / "nccl_trace_rank_3", dump(0, 1))
    new, old = collect_files([tmp_path]).evidence
    assert isinstance(new.observation, FlightRecording)
    assert isinstance(old.observation, Absence)
    assert (old.rank, old.observation.reason) == (3, AbsenceReason.DUPLICATE_RANK)
    assert new.origin in old.observation.detail


def test_overlapping_paths_and_links_give_a_file_once(tmp_path: Path) -> None:
    path = write(tmp_path / "blobs" / "abc", dump(0))
    (tmp_path / "nccl_trace_rank_2").symlink_to(path)
    (tmp_path / "latest").symlink_to(tmp_path / "blobs")
    item = only(collect_files([tmp_path, tmp_path / "blobs", path]))
    assert (item.rank, item.origin) == (2, str(tmp_path / "nccl_trace_rank_2"))


def test_traps_become_absences(tmp_path: Path) -> None:
    write(tmp_path / "nccl_trace_rank_0", dump(0))
    write(tmp_path / "nccl_trace_rank_1", b"")
    write(tmp_path / "nccl_trace_rank_2", b"\x80\x02garbage")
    os.mkfifo(tmp_path / "nccl_trace_rank_3")
    os.mkfifo(tmp_path / "nccl_trace_rank_3.pipe")  # PyTorch's own
    (tmp_path / "nccl_trace_rank_4").symlink_to("/etc/passwd")
    (tmp_path / "nccl_trace_rank_5").symlink_to("/dev/zero")
    (tmp_path / "nccl_trace_rank_6").mkdir()
    (tmp_path / "nccl_trace_rank_7").symlink_to("nowhere")
    (tmp_path / "nccl_trace_rank_8").symlink_to("nccl_trace_rank_8")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "nccl_trace_rank_9"))
        collected = collect_files([tmp_path])
    assert absences(collected) == {
        "nccl_trace_rank_1": AbsenceReason.EMPTY,
        "nccl_trace_rank_2": AbsenceReason.UNREADABLE,
        "nccl_trace_rank_3": AbsenceReason.SKIPPED,
        "nccl_trace_rank_4": AbsenceReason.SKIPPED,
        "nccl_trace_rank_5": AbsenceReason.SKIPPED,
        "nccl_trace_rank_7": AbsenceReason.UNREADABLE,
        "nccl_trace_rank_8": AbsenceReason.SKIPPED,
        "nccl_trace_rank_9": AbsenceReason.SKIPPED,
    }
    assert {item.source for item in collected.evidence} == {CollectorName.FLIGHT_RECORDER}
    assert "root:" not in repr(collected)


def test_huge_and_greedy_files_become_absences(tmp_path: Path) -> None:
    for name, head in (("_dump_1", b"\x80\x02}"), ("_dump_2", b""), ("rank_3.log", b"step 1\n")):
        with (tmp_path / name).open("wb") as file:
            file.write(head)
            file.truncate(8 * 1024**4)
    write(tmp_path / "_dump_4", b"\x80\x02]r\xff\xff\xff\x7f.")
    write(tmp_path / "_dump_5", b"\x80\x05\x96\xff\xff\xff\xff\xff\x00\x00\x00")
    write(tmp_path / "_dump_6", dump(0))
    collected = collect_files([tmp_path])
    assert absences(collected) == {f"_dump_{n}": AbsenceReason.UNREADABLE for n in (1, 2, 4, 5)}
    assert collected.unrecognised == (str(tmp_path / "rank_3.log"),)


def test_name_that_is_no_text_is_read(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path)
    with open(folder + b"/\xff_rank_3", "wb") as file:  # noqa: PTH123 - bytes
        file.write(dump(0))
    item = only(collect_files([tmp_path]))
    assert (item.rank, item.origin) == (3, f"{tmp_path}/\\xff_rank_3")


@pytest.mark.parametrize("path", ["/nowhere/at/all", "/proc/self/root/etc", "/sys"])
def test_path_that_cannot_be_meant_is_the_users_error(path: str) -> None:
    with pytest.raises(InputError, match=path):
        collect_files([Path(path)])


def test_empty_folder_is_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file"):
        collect_files([tmp_path])


def test_real_cases(real_dumps: list[Path]) -> None:
    folder = real_dumps[0].parent
    collected = collect_files([folder])
    assert sorted(item.rank for item in collected.evidence if item.rank is not None) == list(range(16))
    assert not absences(collected)
