"""Layouts near an invalid one."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pardbg.watchdog.layout.nearest import find_nearest
from pardbg.watchdog.layout.plan import Framework, Plan
from pardbg.watchdog.layout.rules import is_valid


def changes(plan: Plan) -> list[dict[str, int | str]]:
    return [nearby.changes for nearby in find_nearest(plan)]


def test_one_option_is_changed_where_one_suffices_by_the_smallest_factor_first() -> None:
    assert changes(Plan(world_size=64, tp=6)) == [{"tp": 8}, {"tp": 4}, {"tp": 2}]


def test_what_costs_nothing_new_comes_before_what_is_nearer() -> None:
    assert changes(Plan(world_size=96, tp=14, gpus_per_node=8)) == [{"tp": 8}, {"tp": 4}, {"tp": 2}]  # 12 and 16 are nearer


def test_what_follows_from_the_others_is_changed_first() -> None:
    assert changes(Plan(world_size=16, tp=2, pp=2, dp=8))[0] == {"dp": 4}


def test_order_is_repaired() -> None:
    assert changes(Plan(world_size=16, tp=2, cp=2, pp=2, order="tp-cp-ep-pp-dp"))[0] == {"order": "tp-cp-ep-dp-pp"}


def test_zero_is_lowered_where_a_pipeline_does_not_go_with_it() -> None:
    plan = Plan(world_size=16, pp=8, zero=3, framework=Framework.DEEPSPEED)
    assert changes(plan) == [{"zero": 1}, {"pp": 1}]


def test_batch_is_fitted_to_the_other_changes() -> None:
    plan = Plan(world_size=512, tp=16, pp=4, heads=40, layers=61, global_batch=100, micro_batch=1)
    assert changes(plan)[0] == {"tp": 8, "pp": 1, "global_batch": 128}


def test_sizes_of_a_nearby_layout_are_those_of_its_grids() -> None:
    nearby = find_nearest(Plan(world_size=16, tp=2, pp=2, ep=8))[0]
    assert nearby.changes == {"ep": 4}
    assert nearby.axes == {"tp": 2, "cp": 1, "dp": 4, "pp": 2}
    assert nearby.expert_axes == {"etp": 2, "ep": 4, "edp": 1, "pp": 2}


sizes = st.sampled_from((1, 2, 3, 4, 6, 7, 8, 12))


@settings(max_examples=30, deadline=None)
@given(
    world=st.sampled_from((16, 48, 60, 64, 96)),
    axes=st.tuples(sizes, sizes, sizes, sizes),
    model=st.tuples(st.sampled_from((12, 30, 32)), st.sampled_from((16, 20, 61))),
    batch=st.sampled_from((None, 100, 256)),
    framework=st.sampled_from(Framework),
)
def test_nearest_layouts_are_valid_and_change_neither_world_nor_model(
    world: int, axes: tuple[int, int, int, int], model: tuple[int, int], batch: int | None, framework: Framework
) -> None:
    tp, pp, cp, ep = axes
    cp = 1 if framework is Framework.DEEPSPEED else cp
    plan = Plan(
        world_size=world, tp=tp, pp=pp, cp=cp, ep=ep, heads=model[0], layers=model[1], global_batch=batch, framework=framework
    )
    if is_valid(plan):
        return
    for nearby in find_nearest(plan):
        assert is_valid(replace(plan, **nearby.changes))
        assert nearby.changes.keys() <= {"tp", "pp", "cp", "ep", "global_batch"}
