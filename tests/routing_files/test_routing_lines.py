"""Files of routing counts, honest and hostile."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pardbg.collectors.parsing import routing_lines
from pardbg.collectors.parsing.recognise import Content, parse_file
from pardbg.collectors.parsing.routing_lines import parse_routing_lines
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.routing import RoutingRow, RoutingSeries

GOOD = b'{"step": 7, "layer": 1, "counts": [4, 0]}\n'


def steps_of(data: bytes) -> list[int]:
    return [row.step for row in parse_routing_lines(data).series[None].rows]


def test_line_with_everything_becomes_a_row() -> None:
    line = {
        "step": 3, "layer": 2, "counts": [5, 3.0, 0, 0], "dropped": [1, 0, 0, 0], "predicted_dropped": 1.5, "capacity": 4,
        "top_k": 2,
        "tokens": 4, "entropy": 1.2, "z": 2.5, "aux_loss": 1.01, "ep_size": 2, "router_grad_norm": 0.5, "loss": 3.2, "lr": 1e-4,
    }  # fmt: skip
    assert parse_routing_lines(json.dumps(line).encode()).series == {
        None: RoutingSeries(
            rows=(
                RoutingRow(
                    step=3, layer=2, counts=(5, 3, 0, 0), dropped=1, predicted_dropped=1.5, capacity=4, top_k=2, tokens=4,
                    entropy=1.2, z=2.5, aux_loss=1.01, ep_size=2, router_grad_norm=0.5, loss=3.2,
                ),
            )
        )
    }  # fmt: skip


@pytest.mark.parametrize(
    "hostile",
    [
        b'{"step": 1, "layer": 0, "counts": [4, NaN]}',
        b'{"step": 1, "layer": 0, "counts": [4, -1]}',
        b'{"step": 1, "layer": 0, "counts": [4, 1e300]}',
        b'{"step": 1, "layer": 0, "counts": [4, 0.5]}',
        b'{"step": 1, "layer": 0, "counts": [4, true]}',
        b'{"step": 1, "layer": 0, "counts": [4, "4"]}',
        b'{"step": 1, "layer": 0, "counts": [4, [4]]}',
        b'{"step": 1, "layer": 0, "counts": []}',
        b'{"step": 1, "layer": 0, "counts": [%s]}' % b",".join([b"1"] * 20_000),
        b'{"step": 1, "layer": 0, "counts": [%s]}' % (b"9" * 5000),
        b'{"step": -1, "layer": 0, "counts": [4, 4]}',
        b'{"step": true, "layer": 0, "counts": [4, 4]}',
        b'{"step": 1, "layer": 99999, "counts": [4, 4]}',
        b'{"step": 1, "layer": 0, "counts": [4, 4], "rank": 1e9}',
        b'{"step": 1, "layer": 0, "counts": [4, 4], "rank": 99999999999}',
        b'{"step": 1, "layer": 0, "counts": [4, 4], "x": %s}' % (b"[" * 100_000),
        b'{"step": 1, "layer": 0, "counts": [4,',
    ],
)  # fmt: skip
def test_line_with_what_no_router_gives_is_left_out_and_counted(hostile: bytes) -> None:
    read = parse_routing_lines(GOOD + hostile + b"\n\n" + GOOD.replace(b"7", b"8"))

    assert [row.step for row in read.series[None].rows] == [7, 8]
    assert [loss.detail.partition("; line 2: ")[0] for loss in read.losses] == ["1 of 3 lines cannot be used and were left out"]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ('"loss": NaN', "loss is NaN, not a finite number"),
        ('"loss": 1e300', "loss is too large a number, not a finite number"),
        ('"entropy": Infinity', "entropy is infinite, not a number from 0 on"),
        ('"tokens": "8"', "tokens is text, not a number from 0 on"),
        ('"top_k": 3', "top_k is 3, not a whole number from 1 to the number of experts"),
        ('"ep_size": 0', "ep_size is 0, not a whole number from 1 to the number of experts"),
        ('"dropped": -1', "dropped is -1, not a number from 0 on, or one for each expert"),
        ('"dropped": [1, 1, 1]', "dropped is a list of 3, not a number from 0 on, or one for each expert"),
    ],
)
def test_of_a_line_with_a_bad_value_that_it_does_not_need_only_the_value_is_left_out(value: str, told: str) -> None:
    read = parse_routing_lines(GOOD + b'{"step": 8, "layer": 1, "counts": [4, 0], "z": 2.5, %s}' % value.encode())

    assert [(row.step, row.z) for row in read.series[None].rows] == [(7, None), (8, 2.5)]
    field = value.split('"')[1]
    assert [loss.detail for loss in read.losses] == [f"{field} was left out in 1 of 2 lines; line 2: {told}"]


def test_step_and_layer_that_are_written_as_text_are_read() -> None:
    assert parse_routing_lines(b'{"step": "9", "layer": "3", "counts": [1, 2]}').series == {
        None: RoutingSeries(rows=(RoutingRow(step=9, layer=3, counts=(1, 2)),))
    }


def test_newest_lines_that_cannot_be_used_are_a_loss_and_a_single_one_is_none() -> None:
    bad = b'{"step": 7, "layer": 1, "counts": [4, -1]}\n'
    lost, damaged = (parse_routing_lines(GOOD * 90 + bad * count).losses[0] for count in (30, 1))

    assert (lost.reason, damaged.reason) == (AbsenceReason.LOST, AbsenceReason.UNREADABLE)
    assert lost.detail == (
        "30 of 120 lines cannot be used and were left out, most of the newest 50 among them; "
        "line 91: counts is a list of 2 with -1, not a list of 2 to 16384 whole numbers from 0 on"
    )


def test_model_that_is_given_other_experts_keeps_both_parts() -> None:
    other = b"".join(b'{"step": %d, "layer": 1, "counts": [4, 0, 1]}\n' % step for step in range(8, 18))
    read = parse_routing_lines(GOOD * 20 + other)

    assert (len(read.series[None].rows), read.losses) == (11, ())


def test_banner_before_the_counts_does_not_hide_them() -> None:
    assert parse_file("x.txt", b"starting\n" * 10 + GOOD * 12).content is Content.ROUTING


def test_line_whose_layer_has_another_number_of_experts_is_left_out() -> None:
    other = b'{"step": 9, "layer": 1, "counts": [4, 0, 1]}\n'
    assert steps_of(GOOD + other + GOOD.replace(b"7", b"8")) == [7, 8]


def test_file_without_a_usable_line_says_what_a_line_needs() -> None:
    with pytest.raises(ParseError, match="were assigned: line 1: counts is a list of 2 with -1") as caught:
        parse_routing_lines(b'{"step": 1, "layer": 0, "counts": [-1, 2]}\n')
    assert caught.value.remedy == "each line needs step, layer and counts"


@pytest.mark.parametrize("name", ["routing.jsonl", "x", "trace_rank_0", "train.log"])
def test_content_decides_what_the_file_is_even_if_its_first_line_is_cut(name: str) -> None:
    read = parse_file(name, b"3, 5]}\n" + GOOD)

    assert read.content is Content.ROUTING
    assert read.content.source is CollectorName.ROUTING
    assert [type(found.observation).__name__ for found in read.found] == ["RoutingSeries", "Absence"]


def line(step: int, layer: int = 0, mark: int = 1, **more: int) -> bytes:
    return json.dumps({"step": step, "layer": layer, "counts": [mark, 0], **more}).encode() + b"\n"


def marks(data: bytes) -> list[tuple[int, int, int]]:
    return [(row.step, row.layer, row.counts[0]) for row in parse_routing_lines(data).series[None].rows]


def test_rows_that_come_late_are_put_in_order() -> None:
    assert steps_of(line(2) + line(0) + line(3) + line(1)) == [0, 1, 2, 3]


def test_restart_takes_back_the_steps_it_repeats_and_those_it_has_not_come_to_again() -> None:
    first = b"".join(line(step, layer, 1) for step in range(5) for layer in range(2))
    again = b"".join(line(step, layer, 2) for step in (2, 3) for layer in range(2))

    expected = [(step, layer, 1) for step in (0, 1) for layer in (0, 1)] + [
        (step, layer, 2) for step in (2, 3) for layer in (0, 1)
    ]
    assert marks(first + again) == expected
    assert marks(first + again + line(1, 0, 3)) == [(0, 0, 1), (0, 1, 1), (1, 0, 3)]  # and once more, from further back


def test_of_two_lines_of_one_step_the_later_one_counts() -> None:
    assert marks(line(0, 0, 1) + line(1, 0, 1) + line(1, 0, 2)) == [(0, 0, 1), (1, 0, 2)]


def test_ranks_that_share_a_file_keep_their_series() -> None:
    read = parse_routing_lines(line(0, rank=1) + line(0, rank=0) + line(1, rank=1))
    assert {rank: len(series.rows) for rank, series in read.series.items()} == {1: 2, 0: 1}


def test_of_a_huge_file_the_newest_steps_are_read_and_the_rest_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing_lines, "MOST_COUNTS", 20)
    read = parse_routing_lines(b"".join(map(line, range(1000))))

    assert [row.step for row in read.series[None].rows] == list(range(990, 1000))
    assert [loss.reason for loss in read.losses] == [AbsenceReason.SKIPPED]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=80), st.just(GOOD[:-1])), max_size=12))
def test_bytes_of_any_kind_give_rows_of_plain_numbers_or_one_error(parts: list[bytes]) -> None:
    try:
        read = parse_routing_lines(b"\n".join(parts))
    except ParseError:
        return
    assert all(row.counts for series in read.series.values() for row in series.rows)


_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.lists(st.integers(), max_size=3)
)
_KEYS = st.sampled_from(
    ["dropped", "capacity", "top_k", "tokens", "entropy", "z", "aux_loss", "ep_size", "rank", "router_grad_norm", "loss"]
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(_KEYS, _VALUES, max_size=4), st.lists(_VALUES, min_size=1, max_size=4))
def test_values_of_any_kind_never_reach_a_row_unless_they_are_finite_and_not_negative(
    extra: dict[str, object], counts: list[object]
) -> None:
    data = GOOD + json.dumps({"step": 1, "layer": 0, "counts": counts, **extra}).encode()
    for series in parse_routing_lines(data).series.values():
        for row in series.rows:
            assert all(type(count) is int and 0 <= count < 2**53 for count in row.counts)
            known = (row.dropped, row.capacity, row.tokens, row.entropy, row.z, row.router_grad_norm)
            assert all(value is None or 0 <= value < 2**54 for value in known)
