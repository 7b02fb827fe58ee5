"""What a file is, by its content."""

import json

import pytest

from pardbg.collectors.parsing.recognise import Content, Portion, choose_portion, parse_file, recognise, tell_unread
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason
from tests.collectors.dumps import as_json, make_dump, make_entry, pickled

THREADS = json.dumps([{"frames": [], "thread_id": 1, "active": True, "owns_gil": False}]).encode()
JOB = b'{"job": "a", "world_size": 1, "ranks": [{"rank": 0}]}'

CONTENTS = [
    ("anything.bin", pickled(make_dump([make_entry(0)])), Content.FLIGHT_RECORDER),
    ("x.json", as_json(make_dump([make_entry(0)])), Content.FLIGHT_RECORDER),
    ("x.json", as_json(make_dump([make_entry(0)]))[:300], Content.FLIGHT_RECORDER),
    ("x.json", json.dumps([make_entry(0)]).encode(), Content.FLIGHT_RECORDER),
    ("rank_3.json", THREADS, Content.STACKS),
    ("x.txt", b'Process 1: p\nPython v3.11\n\nThread 1 (idle): "MainThread"\n    f (x.py:1)\n', Content.STACKS),
    ("x", b"Current thread 0x00001 (most recent call first):\n", Content.STACKS),
    ("other.json", JOB, Content.JOB),
    ("job.json", b'{"job": "a", "wor', Content.JOB),
    ("train.log", b"epoch 1\n", Content.RANK_LOG),
    ("notes", b"[rank3]: hello\n", Content.RANK_LOG),
    ("notes", "[rank3]: hello\r\n".encode("utf-16"), Content.RANK_LOG),
    ("notes", "hello\r\n".encode("utf-16"), Content.UNRECOGNISED),
    ("slurm-2.out", b"srun: error: Node failure on n17\n", Content.RANK_LOG),
    ("x.log", b"[rank3]:[E1129 14:00:00.0 x.cpp:1] hm\n", Content.RANK_LOG),
    ("_dump_3", b"PAR1garbage", Content.FLIGHT_RECORDER),
    ("truth.json", b'{"culprits": [3], "ranks": [1, 2]}', Content.UNRECOGNISED),
    ("report.json", b'{"schema": "pardbg.report/1", "ranks": [{"rank": 1}]}', Content.UNRECOGNISED),
    ("page.html", b"<html><body>Traceback?</body></html>", Content.UNRECOGNISED),
    ("trace.parquet", b"PAR1\0\0", Content.UNRECOGNISED),
    ("gpu.jsonl", b'{"t": 1, "rank": 0}\n{"t": 2, "rank": 0}\n', Content.UNRECOGNISED),
    ("kernel_a.log", b"[1.0] NVRM: Xid (PCI:0000:3b:00): 79\n", Content.KERNEL_LOG),
    ("dmesg_node-7.txt", b"nothing of interest\n", Content.KERNEL_LOG),
    ("saved", b"[1.0] NVRM: Xid (PCI:0000:3b:00): 79\n[2.0] usb 1-1: new device\n", Content.KERNEL_LOG),
    ("train.log", b"step 1\n[rank1]: NVRM: Xid (PCI:0000:3b:00): 79\n", Content.RANK_LOG),
    ("x.json", b'{"nccl_version": "2.28.3", "communicators": []}', Content.RAS),
    ("ras_7.txt", b"NCCL version 2.27.3 compiled with CUDA 12.8\n\nJob summary\n===\n\nCommunicators... (0s)\n", Content.RAS),
    ("stderr.log", b"", Content.EMPTY_LOG),
    ("_dump_3", b"", Content.FLIGHT_RECORDER),
    (".gitkeep", b"", Content.UNRECOGNISED),
    ("noise", bytes(range(256)), Content.UNRECOGNISED),
]


@pytest.mark.parametrize(("name", "data", "content"), CONTENTS)
def test_content_decides(name: str, data: bytes, content: Content) -> None:
    assert recognise(name, data) is content


@pytest.mark.parametrize(
    ("name", "data"),
    [("_dump_3", b""), ("_dump_3", b"zz"), ("x", b"\x80\x02zz"), ("job.json", b'{"job'), ("stack_1.txt", b"Permission Denied")],
)
def test_damaged_evidence_is_an_error_in_one_line(name: str, data: bytes) -> None:
    with pytest.raises(ParseError) as caught:
        parse_file(name, data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "data", "content"), [case for case in CONTENTS if case[2] is Content.UNRECOGNISED])
def test_what_is_not_recognised_is_no_error(name: str, data: bytes, content: Content) -> None:
    assert parse_file(name, data).content is content
    assert parse_file(name, data).found == ()


def test_only_what_a_parser_needs_is_read() -> None:
    assert choose_portion(b"\x80\x02}") is Portion.WHOLE
    assert choose_portion(b'  {"version') is Portion.WHOLE
    assert choose_portion(b"[rank3]: x") is Portion.TAIL
    assert choose_portion(b"\0" * 10) is Portion.NOTHING


def test_a_log_of_which_only_the_end_is_read_says_so() -> None:
    (found,) = tell_unread(Content.RANK_LOG, 8 << 20, 40 << 20)
    assert found.observation == Absence(
        reason=AbsenceReason.SKIPPED, detail="only the newest 8 of 40 MiB of this log were read"
    )
    assert not list(tell_unread(Content.RANK_LOG, 8 << 20, 8 << 20))
