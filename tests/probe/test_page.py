"""The page as its reader sees it: a right record or none, never a wrong one."""

import multiprocessing
import os
import time
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from pardbg.collectors.probe.page import Page, is_in_memory
from pardbg.collectors.probe.page_format import (
    PAGE_SIZE,
    EndingRecord,
    MemoryRecord,
    NotAPageError,
    PhaseRecord,
    StepRecord,
    TornError,
    decode_header,
    decode_record,
)

READS = 20_000


def write_for_ever(path: str, is_done: Event) -> None:
    """All fields of a record say the same number."""
    page = Page(path)
    number = 0
    while not is_done.is_set():
        for _ in range(1000):
            number += 1
            page.write(StepRecord, *[number] * 6)
            page.write(EndingRecord, number, 1, 2, number, b"w" * (number % 500), b"t" * (number % 500))


def test_a_reader_beside_a_writer_never_sees_a_wrong_value(tmp_path: Path) -> None:
    path = tmp_path / "page"
    context = multiprocessing.get_context("spawn")
    is_done = context.Event()
    writer = context.Process(target=write_for_ever, args=(str(path), is_done))
    writer.start()
    torn, seen = 0, set()
    try:
        while not path.exists() or path.stat().st_size < PAGE_SIZE:
            time.sleep(0.01)
        with path.open("rb", buffering=0) as file:
            for _ in range(READS):
                data = os.pread(file.fileno(), PAGE_SIZE, 0)
                for kind in (StepRecord, EndingRecord):
                    try:
                        record = decode_record(kind, data)
                    except TornError:
                        torn += 1
                        continue
                    if isinstance(record, StepRecord):
                        assert len(set(record)) == 1
                        seen.add(record.step)
                    elif isinstance(record, EndingRecord):
                        number = record.at_ns
                        assert record == (number, 1, 2, number, b"w" * (number % 500), b"t" * (number % 500))
    finally:
        is_done.set()
        writer.join()
        writer.close()
    assert len(seen) > 10
    assert torn < READS


def test_half_a_record_is_noticed(tmp_path: Path) -> None:
    page = Page(str(tmp_path / "page"))
    page.write(StepRecord, 1, 1, 1, 1, 1, 1)
    old = (tmp_path / "page").read_bytes()
    page.write(StepRecord, 2, 2, 2, 2, 2, 2)
    new = (tmp_path / "page").read_bytes()
    for cut in range(65, 64 + 8 + 48):
        mixed = new[:cut] + old[cut:]
        if mixed in {old, new}:
            continue
        with pytest.raises(TornError):
            decode_record(StepRecord, mixed)


def test_a_new_page_has_a_header_and_no_records(tmp_path: Path) -> None:
    Page(str(tmp_path / "page"))
    data = (tmp_path / "page").read_bytes()
    pid, created_ns = decode_header(data)
    assert (pid, len(data)) == (os.getpid(), PAGE_SIZE)
    assert abs(time.time_ns() - created_ns) < 60 * 10**9
    assert [decode_record(kind, data) for kind in (StepRecord, PhaseRecord, MemoryRecord, EndingRecord)] == [None] * 4
    with pytest.raises(NotAPageError):
        decode_header(data[:-1])
    with pytest.raises(FileExistsError):
        Page(str(tmp_path / "page"))


def test_versions_go_round(tmp_path: Path) -> None:
    page = Page(str(tmp_path / "page"))
    page._version = 2**32 - 4
    for number in range(6):
        page.write(PhaseRecord, number, 0, b"checkpoint")
        assert decode_record(PhaseRecord, (tmp_path / "page").read_bytes()) == (number, 0, b"checkpoint")


def test_only_the_page_of_memory_is_in_memory() -> None:
    assert not is_in_memory("/proc/x")
    if Path("/dev/shm").is_mount():  # noqa: S108 - looked at
        assert is_in_memory("/dev/shm/x")  # noqa: S108
