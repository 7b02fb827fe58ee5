"""Members as runs: the same members come back, in their order."""

from hypothesis import given
from hypothesis import strategies as st

from pardbg.watchdog.model.members import fold_members, unfold_members


@given(st.lists(st.integers(0, 5000), max_size=60))
def test_members_come_back_as_they_were(ranks: list[int]) -> None:
    assert unfold_members(fold_members(ranks)) == tuple(ranks)


def test_regular_groups_are_one_run() -> None:
    assert fold_members(range(3, 4000, 8)) == ((3, 8, 500),)
    assert fold_members([0, 1, 2, 7]) == ((0, 1, 3), (7, 1, 1))
