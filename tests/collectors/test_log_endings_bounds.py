"""No text can hurt the readers of a log's last words: time is linear in it, whatever it repeats."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pardbg.collectors.parsing.log_endings import parse_endings

MOST_S = 8.0  # on a machine that is busy; quadratic readers took longer than that on an idle one
PIECES = (
    "1 Workers (tasks / actors) killed due to memory pressure (OOM) ",
    "ActorDiedError: The actor died unexpectedly before finishing this task.\npid: 7\n",
    "Missing ranks:\n1: [a]\n",
    "[missing ranks: 1]",
    "EI0002: times out",
    "x.SIGTERMException",
)


@pytest.mark.parametrize("piece", PIECES)
def test_repetition_costs_no_more_than_its_length(piece: str) -> None:
    start = time.process_time()
    assert parse_endings(piece * (200_000 // len(piece)))
    assert time.process_time() - start < MOST_S


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([*PIECES, "\n", "IP: ", "\tip: 10.0.0.8\n", "[rank3]: ", "7: [", "\x00"]), max_size=12))
def test_any_order_of_their_words_is_read(pieces: list[str]) -> None:
    for event in parse_endings("".join(pieces)):
        assert event.text


def test_a_word_deep_in_a_long_line_is_not_given_to_who_signed_another_line() -> None:
    (event,) = parse_endings(f"[rank3]: step 1\n{'x' * 5_000} lightning.exceptions.SIGTERMException")
    assert event.rank is None
    assert "step 1" not in event.text
