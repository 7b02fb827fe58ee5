"""How sets of ranks are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pardbg.watchdog.model.ranks import fold_ranks


def unfold(text: str) -> list[int]:
    ranks: list[int] = []
    for run in text.split(",") if text else []:
        ends, _, stride = run.partition(":")
        first, _, last = ends.partition("-")
        ranks += range(int(first), int(last or first) + 1, int(stride or 1))
    return ranks


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([], ""),
        ([37], "37"),
        ([0, 1], "0-1"),
        ([0, 1, 2, 4, 5], "0-2,4-5"),
        ([5, 4, 2, 1, 0, 0], "0-2,4-5"),
        ([0, 8, 16, 24], "0,8,16,24"),
        ([0, 8, 16, 24, 32], "0-32:8"),
        ([0, 2, 4, 6, 8, 9, 10], "0-8:2,9-10"),
        (range(512), "0-511"),
        (range(4, 512, 8), "4-508:8"),
    ],
)
def test_ranks_are_folded(ranks: list[int], expected: str) -> None:
    assert fold_ranks(ranks) == expected


@given(st.lists(st.integers(min_value=0, max_value=200)))
def test_folded_ranks_lose_none_and_add_none(ranks: list[int]) -> None:
    assert unfold(fold_ranks(ranks)) == sorted(set(ranks))


@given(st.integers(0, 50), st.integers(5, 60), st.integers(2, 64))
def test_a_strided_group_is_one_run(first: int, count: int, stride: int) -> None:
    ranks = range(first, first + count * stride, stride)
    assert fold_ranks(ranks) == f"{first}-{ranks[-1]}:{stride}"
