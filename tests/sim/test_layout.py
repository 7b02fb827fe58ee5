"""The parallel layout of a simulated job."""

import pytest

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.sim.layout import ParallelLayout, default_layout, parse_layout


def test_tensor_parallel_ranks_are_neighbours_and_stages_are_farthest_apart() -> None:
    layout = ParallelLayout(tp=2, pp=2, dp=4, ep=2)

    members = {axis: group.ranks for axis, group in layout.groups_by_axis(9).items()}

    assert members == {
        "world": tuple(range(16)),
        "dp": (9, 11, 13, 15),
        "tp": (8, 9),
        "pp": (1, 9),
        "ep": (9, 11),
    }


def test_group_names_count_creations_over_the_whole_job() -> None:
    names = [group.name for group in ParallelLayout(tp=2, pp=2, dp=2).groups]

    assert names == [str(number) for number in range(1 + 4 + 4 + 4)]


@pytest.mark.parametrize("rank_count", [2, 3, 4, 7, 8, 16, 24, 64, 512])
def test_default_layout_uses_every_rank(rank_count: int) -> None:
    assert default_layout(rank_count).world_size == rank_count


def test_data_parallel_takes_what_the_named_axes_leave() -> None:
    assert parse_layout("tp=4,pp=2", 64) == ParallelLayout(tp=4, pp=2, dp=8)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tp=2,dp=4", "makes 8 ranks, --ranks asks for 16"),
        ("tp=2,cp=2", "'cp=2' is not one of"),
        ("tp=two", "'tp=two' is not one of"),
        ("dp=16,ep=3", "ep=3 does not divide dp=16"),
        ("tp=0", "at least 1"),
    ],
)
def test_impossible_layout_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        parse_layout(text, 16)
