"""The file `routing` as its reader sees it: whole steps or none, never a wrong one; hostile bytes are refused."""

import contextlib
import os
import struct
from pathlib import Path

import msgspec
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pardbg.collectors.parsing.routing_page import parse_routing_page, read_routing
from pardbg.collectors.probe import routing_format as form
from pardbg.collectors.probe.routing.writing import RoutingWriter
from pardbg.collectors.vitals.routing_file import RoutingFile
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.routing import RoutingSeries
from pardbg.watchdog.routing.figures import measure
from pardbg.watchdog.routing.merging import merge

THREE_NUMBERS = st.tuples(*[st.integers(0, 2**32 - 1)] * 3)
NAN = float("nan")
LINES = [
    form.LayerLine(2, 3, 2, 1, is_frozen=False, name=b"model.layers.2.gate"),
    form.LayerLine(5, 4, 0, 0, is_frozen=True, name=b""),
]


def write(writer: RoutingWriter, step: int) -> None:
    figures = [(10.0, 1.0, NAN, NAN, 0.5, NAN, NAN, 0.25), (8.0, NAN, NAN, 2.0, NAN, NAN, 1.0, NAN)]
    counts = torch.tensor([[step, 2, 3, 9], [4, 5, 6, step]], dtype=torch.float64)
    writer.write_step((step, 1000 + step, 2.0 if step % 2 else NAN), figures, counts)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("file") / "routing"
    writer = RoutingWriter(str(path), LINES, 4)
    for step in range(1, 6):
        write(writer, step)
    return path.read_bytes()


def test_what_was_written_is_read_and_only_what_is_new(whole: bytes) -> None:
    series = parse_routing_page(whole, os.getpid())
    assert [(row.step, row.layer) for row in series.rows] == [(step, layer) for step in range(1, 6) for layer in (2, 5)]
    first, second = parse_routing_page(whole, after_step=4).rows
    assert (first.counts, first.tokens, first.dropped, first.entropy, first.loss) == ((5, 2, 3), 10.0, 1.0, 0.5, 2.0)
    assert (first.top_k, first.ep_size, first.router_grad_norm, first.capacity) == (2, 1, 0.25, None)
    assert (second.counts, second.top_k, second.ep_size, second.aux_loss) == ((4, 5, 6, 5), None, None, 1.0)
    assert (series.names, series.frozen) == ({2: "model.layers.2.gate"}, (5,))
    assert parse_routing_page(whole, after_step=5).rows == ()
    with pytest.raises(ParseError, match="not of 1"):
        parse_routing_page(whole, pid=1)


def test_the_ring_keeps_the_newest_steps_within_its_budget(tmp_path: Path) -> None:
    path = tmp_path / "routing"
    writer = RoutingWriter(str(path), LINES, 4)
    for step in range(1, 601):
        write(writer, step)
    assert [row.step for row in parse_routing_page(path.read_bytes()).rows[::2]] == list(range(89, 601))
    assert path.stat().st_size < form.BUDGET
    assert form.count_slots(61, 256) == 63
    assert form.lay_out(61, 256, 63).size < form.BUDGET + 2**16
    assert form.count_slots(200, 1024) >= form.LEAST_SLOTS


def test_a_step_that_is_half_written_is_not_shown(whole: bytes) -> None:
    layout = form.lay_out(2, 4, form.count_slots(2, 4))
    start = layout.slot_at(4, form.MOST_SLOTS)
    for place in range(start, start + layout.slot_size):
        torn = bytearray(whole)
        torn[place] ^= 1
        assert parse_routing_page(bytes(torn)).rows == (), place
    gap = layout.slot_at(2, form.MOST_SLOTS)
    assert [row.step for row in parse_routing_page(whole[:gap] + b"\1" + whole[gap + 1 :]).rows] == [4, 4, 5, 5]


def test_a_file_that_another_one_has_replaced_is_to_be_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "routing"
    writer = RoutingWriter(str(path), LINES[:1], 3)
    file = RoutingFile(os.open(path, os.O_RDONLY), os.getpid())
    assert file.read() == RoutingSeries(rows=(), names={2: "model.layers.2.gate"})
    write(RoutingWriter(str(path), LINES, 4), 1)
    writer.retire()
    assert file.read() is None
    file.close()
    again = RoutingFile(os.open(path, os.O_RDONLY), os.getpid())
    series = again.read(after_step=0)
    assert series is not None
    assert len(series.rows) == 2
    again.close()


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_hostile_bytes_are_refused_or_read_but_never_break_the_reader(whole: bytes, data: st.DataObject) -> None:
    changed = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, max(0, min(len(changed), 2000) - 1)))
        changed[place : place + 8] = data.draw(st.binary(min_size=8, max_size=8))
    try:
        series = parse_routing_page(bytes(changed))
    except ParseError:
        return
    assert all(len(row.counts) <= 4 for row in series.rows)


@settings(max_examples=60, deadline=None)
@given(numbers=THREE_NUMBERS, row=THREE_NUMBERS, number=st.integers(-3, 9))
def test_numbers_that_are_sealed_but_senseless_are_refused(
    whole: bytes, numbers: tuple[int, int, int], row: tuple[int, int, int], number: int
) -> None:
    header = form.encode_header(form.Header(1, 1, *numbers))
    with contextlib.suppress(ParseError):
        parse_routing_page(header + whole[len(header) :])
    line = form.encode_line(form.LayerLine(number, *row, is_frozen=True, name=b"\xff\x1b[2J"), 1)
    try:
        series = parse_routing_page(whole[: form.TABLE_AT] + line + whole[form.TABLE_AT + len(line) :])
    except ParseError:
        return
    assert series.names[number] == "\ufffd\\x1b[2J"


def test_steps_that_do_not_fall_end_the_walk(whole: bytes) -> None:
    count = form.encode_note(2**64 - 1, 1)
    assert parse_routing_page(whole[: form.NOTE_AT] + count + whole[form.NOTE_AT + len(count) :]).rows == ()
    assert struct.calcsize("<II") + 8 == form.NOTE_SIZE


@pytest.mark.parametrize(("layers", "experts", "slots"), [(4096, 65, 1), (1024, 512, 1), (4, 65536, 64), (1024, 256, 512)])
def test_a_header_that_claims_more_than_a_model_has_is_refused(layers: int, experts: int, slots: int) -> None:
    with pytest.raises(form.NotRoutingError):
        form.decode_header(form.encode_header(form.Header(1, 1, layers, experts, slots)))


def test_what_a_reader_refuses_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="2 layers with 200000 experts"):
        RoutingWriter(str(tmp_path / "routing"), LINES, 200_000)
    assert list(tmp_path.iterdir()) == []
    assert form.is_sane(form.Header(1, 1, 200, 1024, form.count_slots(200, 1024)))


def test_a_look_takes_no_more_than_it_may_and_reads_one_slot_at_a_time(whole: bytes) -> None:
    cuts: list[int] = []

    def cut(offset: int, size: int) -> bytes:
        cuts.append(size)
        return whole[offset : offset + size]

    assert [row.step for row in read_routing(cut, most_counts=17).rows] == [4, 4, 5, 5]
    assert [row.step for row in read_routing(cut, most_counts=0).rows] == [5, 5]
    assert max(cuts) == max(form.ROW_SIZE, form.lay_out(2, 4, 1).slot_size)


def test_counts_without_their_drops_are_marked(tmp_path: Path) -> None:
    writer = RoutingWriter(str(tmp_path / "routing"), [LINES[0]._replace(leaves_out_drops=True)], 3)
    for step, (dropped, predicted) in enumerate([(3.0, NAN), (3.0, 2.0), (0.0, NAN), (NAN, NAN)], 1):
        writer.write_step((step, 1, NAN), [(6.0, dropped, predicted, 4.0, NAN, NAN, NAN, NAN)], torch.tensor([[1, 2, 6]]))
    rows = parse_routing_page((tmp_path / "routing").read_bytes()).rows
    assert [row.counts_are_kept for row in rows] == [True, False, False, False]
    first, second = measure(rows[0]), measure(rows[1])
    assert first is not None
    assert second is not None
    assert (first.drop_ratio, second.drop_ratio, second.predicted_drop_ratio) == (3 / 12, 3 / 9, 2 / 9)
    merged = merge([RoutingSeries(rows=rows[:1]), RoutingSeries(rows=(msgspec.structs.replace(rows[2], step=1),))]).rows[0]
    assert (merged.counts_are_kept, merged.dropped) == (True, 3.0)
