"""The lines of the conversation: what is written can be read, and what others write does no harm."""

import json
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.lines import (
    LINE_BYTES,
    LONGEST_REQUEST_BYTES,
    Part,
    Request,
    Stranger,
    decode_answer_line,
    decode_request,
    encode_answer,
    encode_refusal,
    encode_request,
    pack,
    unpack,
)
from pardbg.watchdog.transport.splitting import FrameSplitter, LineSplitter


def parts_of(request_id: int, node: str, data: bytes) -> list[Part]:
    found = [decode_answer_line(line) for line in encode_answer(request_id, node, data)]
    return [part for part in found if isinstance(part, Part)]


@given(data=st.binary(max_size=5000), node=st.text(min_size=1, max_size=60).filter(str.isprintable))
def test_an_answer_is_read_as_it_was_written(data: bytes, node: str) -> None:
    parts = parts_of(7, node, data)
    assert unpack(b"".join(part.data for part in parts), 10**6) == data
    assert {(part.id, part.node, part.of) for part in parts} == {(7, node, len(parts))}


@pytest.mark.parametrize("node", ["n1", "n" * 255])
def test_no_line_of_an_answer_is_longer_than_srun_keeps_whole(node: str) -> None:
    data = bytes(range(256)) * 40
    lines = [*encode_answer(2**53, node, data + pack(data)), encode_refusal(2**53, node, AbsenceReason.GONE, "\u20ac" * 5000)]
    assert max(map(len, lines)) <= LINE_BYTES
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)


def test_a_request_is_read_as_it_was_written() -> None:
    assert decode_request(encode_request(7, b"packed", 1.5, ("n1", "n2"))) == Request(
        pardbg="collect/1", id=7, data=b"packed", within_s=1.5, nodes=("n1", "n2")
    )


def test_a_request_that_srun_would_choke_on_is_refused() -> None:
    with pytest.raises(ValueError, match="at most"):
        encode_request(1, bytes(LONGEST_REQUEST_BYTES), 1.0, None)


def test_keys_and_minor_versions_that_are_not_known_are_ignored() -> None:
    line = b'{"pardbg":"collect/1.7","id":3,"node":"n1","colour":"blue","data":"QUJD"}'
    assert decode_answer_line(line) == Part(pardbg="collect/1.7", id=3, node="n1", data=b"ABC")


def test_a_line_is_found_behind_a_progress_bar() -> None:
    part = decode_answer_line(b'loading 99%\r100%{"pardbg": "collect/1", "id": 3, "node": "n1"}\r')
    assert part == Part(pardbg="collect/1", id=3, node="n1")


@pytest.mark.parametrize("version", ["collect/2", "collect/10", "collect/2.1"])
def test_another_major_version_is_told_from_rubbish_whatever_its_shape(version: str) -> None:
    assert isinstance(decode_answer_line(json.dumps({"pardbg": version, "id": "x", "node": "n1"}).encode()), Stranger)
    assert isinstance(decode_answer_line(json.dumps({"pardbg": version, "id": 1, "node": "n1"}).encode()), Stranger)
    assert isinstance(decode_request(json.dumps({"pardbg": version, "id": 1, "data": ""}).encode()), Stranger)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"Welcome!",
        b'{"pardbg":',
        b'{"pardbg":1}',
        b'{"pardbg":"collect/1"}',
        b'{"pardbg":"collect/1","id":1,"node":"n1","data":"not base64!"}',
        b'{"pardbg":"collect/1","id":1e300,"node":"n1"}',
        b'{"pardbg":"collect/1","id":' + b"9" * 400 + b',"node":"n1"}',
        b'{"pardbg":' + b"[" * 15000,
        b'{"pardbg":"collect/1","id":1,"node":"\xff\xfe"}',
        b'{"pardbg":"elsewhere/1","id":1,"node":[]}',
    ],
)
def test_what_is_no_line_of_ours_is_nothing(line: bytes) -> None:
    assert decode_answer_line(line) is None
    assert decode_request(line) is None


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything(line: bytes) -> None:
    decode_answer_line(line)
    decode_answer_line(b'{"pardbg":' + line)
    decode_request(b'{"pardbg":"collect/1",' + line)


def test_a_bomb_takes_no_more_memory_than_an_answer_may() -> None:
    bomb = zlib.compress(bytes(100 * 1024**2), 9)
    tracemalloc.start()
    with pytest.raises(ValueError, match="more than 1048576 bytes"):
        unpack(bomb, 1024**2)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 4 * 1024**2


@pytest.mark.parametrize("packed", [b"", b"x", pack(b"abc")[:-1], pack(b"abc") + b"x", pack(b"abc")[:-1] + b"\0"])
def test_what_is_cut_or_changed_does_not_unpack(packed: bytes) -> None:
    with pytest.raises(ValueError, match=r"it unpacks|it does not unpack"):
        unpack(packed, 1000)


@given(st.lists(st.binary(max_size=30)), st.integers(1, 12))
def test_lines_do_not_depend_on_how_bytes_arrive(chunks: list[bytes], longest: int) -> None:
    whole = b"".join(chunks)
    splitter = LineSplitter(longest)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)] + splitter.finish()
    expected = [line[:longest] for line in whole.split(b"\n")]
    assert lines == (expected if expected[-1] else expected[:-1])


@given(st.integers(0, 40_000), st.integers(200, 5000), st.binary(max_size=300).filter(lambda data: b"\n" not in data))
def test_frames_glued_behind_an_endless_line_are_all_found(before: int, chunk_bytes: int, foreign: bytes) -> None:
    frames = list(encode_answer(7, "n1", bytes(range(256)) * 20))
    stream = b"\0" * before + (foreign + b'{"pardbg":').join(frames)
    splitter = FrameSplitter(16_000)
    lines = [line for at in range(0, len(stream), chunk_bytes) for line in splitter.feed(stream[at : at + chunk_bytes])]
    found = [part for part in map(decode_answer_line, [*lines, *splitter.finish()]) if isinstance(part, Part)]
    assert [part.part for part in found] == list(range(len(frames)))


def test_an_endless_line_is_told_once_and_takes_no_memory() -> None:
    splitter = FrameSplitter(1000)
    tracemalloc.start()
    lines = [line for _ in range(1000) for line in splitter.feed(bytes(10000))]
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [len(line) for line in lines] == [1000]
    assert splitter.skipped_bytes >= 1000 * 9000
    assert peak_bytes < 200_000


def test_a_line_without_end_takes_no_memory() -> None:
    splitter = LineSplitter(1000)
    tracemalloc.start()
    lines = [line for _ in range(1000) for line in splitter.feed(b"x" * 10000)]
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [len(line) for line in lines] == [1000]
    assert splitter.skipped_bytes == 1000 * 10000 - 1000
    assert peak_bytes < 200_000
