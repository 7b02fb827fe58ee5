"""Which ranks form which groups: literal tables of Megatron, torchtitan and DeepSpeed, and a count that knows no strides."""

from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pardbg.watchdog.layout.frameworks import dense_grid, expert_grid
from pardbg.watchdog.layout.grid import Grid
from pardbg.watchdog.layout.plan import DEFAULT_ORDER, Framework, Plan

Groups = tuple[tuple[int, ...], ...]

MEGATRON_16 = Plan(world_size=16, tp=2, pp=2)
PP_BEFORE_DP = Plan(world_size=16, tp=2, pp=2, order="tp-cp-ep-pp-dp")
TITAN = Plan(world_size=16, tp=2, pp=2, ep=4, dp_replicate=2, framework=Framework.TORCHTITAN)


def groups(plan: Plan, axis: str) -> Groups:
    grid = dense_grid(plan)
    assert grid is not None
    return grid[axis].groups()


def expert_groups(plan: Plan, axis: str) -> Groups:
    grid = expert_grid(plan)
    assert grid is not None
    return grid[axis].groups()


def blocks(size: int, world: int) -> Groups:
    return tuple(tuple(range(first, first + size)) for first in range(0, world, size))


@pytest.mark.parametrize(
    ("plan", "axis", "first"),
    [
        (MEGATRON_16, "tp", [(0, 1), (2, 3)]),
        (MEGATRON_16, "dp", [(0, 2, 4, 6), (1, 3, 5, 7), (8, 10, 12, 14), (9, 11, 13, 15)]),
        (MEGATRON_16, "pp", [(0, 8), (1, 9)]),
        (PP_BEFORE_DP, "pp", [(0, 2), (1, 3), (4, 6)]),
        (PP_BEFORE_DP, "dp", [(0, 4, 8, 12), (1, 5, 9, 13)]),
        (Plan(world_size=16, tp=2, cp=2, pp=2), "cp", [(0, 2), (1, 3)]),
        (Plan(world_size=16, tp=2, cp=2, pp=2), "dp", [(0, 4), (1, 5)]),
        (Plan(world_size=40, ep=8), "dp", [tuple(range(40))]),
        (TITAN, "tp", [(0, 1), (2, 3)]),
        (TITAN, "dp_shard", [(0, 2), (1, 3), (4, 6)]),
        (TITAN, "dp_replicate", [(0, 4), (1, 5)]),
        (Plan(world_size=8, cp=2, framework=Framework.DEEPSPEED), "sp", [(0, 1), (2, 3)]),
        (Plan(world_size=8, cp=2, framework=Framework.DEEPSPEED), "dp", [(0, 2, 4, 6), (1, 3, 5, 7)]),
    ],
)
def test_groups_are_those_of_the_framework(plan: Plan, axis: str, first: list[tuple[int, ...]]) -> None:
    assert list(groups(plan, axis)[: len(first)]) == first


@pytest.mark.parametrize(
    ("plan", "axis", "first"),
    [
        (Plan(world_size=16, tp=2, pp=2, ep=4, etp=1), "ep", [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11), (12, 13, 14, 15)]),
        (Plan(world_size=16, tp=2, pp=2, ep=4, etp=1), "edp", [(0, 4), (1, 5), (2, 6), (3, 7), (8, 12)]),
        (Plan(world_size=16, tp=2, pp=2, ep=2), "etp", [(0, 1), (2, 3)]),
        (Plan(world_size=16, tp=2, pp=2, ep=2), "ep", [(0, 2), (1, 3), (4, 6), (5, 7)]),
        (Plan(world_size=16, tp=2, pp=2, ep=2), "edp", [(0, 4), (1, 5)]),
        (Plan(world_size=40, ep=8), "ep", list(blocks(8, 40))),
        (Plan(world_size=40, ep=8), "edp", [(0, 8, 16, 24, 32), (1, 9, 17, 25, 33)]),
        (Plan(world_size=16, tp=2, cp=2, pp=2, ep=2, etp=1), "ep", [(0, 1), (2, 3)]),  # cp is folded into the expert grid
        (TITAN, "ep", [(0, 1, 2, 3), (4, 5, 6, 7)]),
        (TITAN, "efsdp", [(0,), (1,)]),
        (replace(TITAN, ep=2), "ep", [(0, 1), (2, 3), (4, 5)]),
        (replace(TITAN, ep=2), "efsdp", [(0, 2), (1, 3), (4, 6)]),
        (TITAN, "dp_replicate", [(0, 4), (1, 5)]),
        (
            Plan(world_size=16, tp=2, ep=4, framework=Framework.DEEPSPEED),
            "ep",
            [(0, 2, 4, 6), (1, 3, 5, 7), (8, 10, 12, 14), (9, 11, 13, 15)],
        ),
        (Plan(world_size=16, tp=2, ep=4, framework=Framework.DEEPSPEED), "edp", [(0, 8), (1, 9), (2, 10)]),
        (Plan(world_size=16, pp=2, ep=4, framework=Framework.DEEPSPEED), "edp", [(0, 4), (1, 5), (2, 6), (3, 7), (8, 12)]),
    ],
)
def test_groups_of_experts_are_those_of_the_framework(plan: Plan, axis: str, first: list[tuple[int, ...]]) -> None:
    assert list(expert_groups(plan, axis)[: len(first)]) == first


def test_axes_of_one_rank_may_be_left_out_of_the_order() -> None:
    assert groups(Plan(world_size=8, tp=2, order="tp-dp"), "dp") == ((0, 2, 4, 6), (1, 3, 5, 7))


sizes_of_axes = st.lists(st.sampled_from((1, 2, 3, 4, 5)), min_size=1, max_size=5).filter(lambda sizes: prod(sizes) <= 240)


def count_slowly(sizes: dict[str, int], name: str) -> set[tuple[int, ...]]:
    """Counts through all places, the last axis slowest, and puts together what differs on one axis only."""
    names = list(sizes)
    places = [
        dict(zip(reversed(names), place, strict=True)) for place in product(*(range(sizes[axis]) for axis in names[::-1]))
    ]
    found: dict[tuple[int, ...], list[int]] = {}
    for rank, place in enumerate(places):
        found.setdefault(tuple(place[axis] for axis in names if axis != name), []).append(rank)
    return {tuple(ranks) for ranks in found.values()}


@settings(max_examples=40, deadline=None)
@given(sizes_of_axes)
def test_every_rank_is_in_exactly_one_group_of_every_axis(counts: list[int]) -> None:
    sizes = {f"axis{place}": size for place, size in enumerate(counts)}
    grid = Grid.of(sizes)
    for axis in grid.axes:
        found = axis.groups()
        assert sorted(rank for ranks in found for rank in ranks) == list(range(prod(counts)))
        assert set(found) == count_slowly(sizes, axis.name)
        assert list(found) == sorted(found)
        assert all(axis.group_of(rank) == ranks and ranks[axis.place_of(rank)] == rank for ranks in found for rank in ranks)


@settings(max_examples=40, deadline=None)
@given(
    st.permutations(DEFAULT_ORDER.split("-")), st.sampled_from([(2, 3, 2), (1, 2, 4), (4, 1, 3)]), st.sampled_from((1, 2, 3))
)
def test_any_order_gives_the_groups_of_a_slow_count(order: list[str], tp_cp_pp: tuple[int, int, int], dp: int) -> None:
    tp, cp, pp = tp_cp_pp
    sizes = {"tp": tp, "cp": cp, "dp": dp, "pp": pp}
    plan = Plan(world_size=prod(sizes.values()), tp=tp, cp=cp, pp=pp, order="-".join(order))
    placed = {axis: sizes[axis] for axis in order if axis in sizes}
    assert all(set(groups(plan, axis)) == count_slowly(placed, axis) for axis in sizes)


@settings(max_examples=40, deadline=None)
@given(sizes_of_axes, st.integers(1, 12))
def test_nodes_that_an_axis_reaches_are_those_of_its_widest_group(counts: list[int], per_node: int) -> None:
    for axis in Grid.of({f"axis{place}": size for place, size in enumerate(counts)}).axes:
        widest = max(len({rank // per_node for rank in ranks}) for ranks in axis.groups())
        assert axis.nodes_reached(per_node) == widest
