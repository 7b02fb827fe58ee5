"""What a layout costs: idle stages, groups that leave a node, and bytes of a rank."""

from math import isclose

import pytest
from msgspec.structs import replace

from pardbg.watchdog.layout import bubble
from pardbg.watchdog.layout.bubble import bubble_ratio, micro_batches_needed
from pardbg.watchdog.layout.costs import warn_of_bubble, warn_of_nodes, warn_of_uneven_stages
from pardbg.watchdog.layout.memory import bytes_per_rank, why_unknown
from pardbg.watchdog.layout.plan import Framework, Plan, Schedule
from pardbg.watchdog.model.layout_report import BytesPerRank

PIPE = Plan(world_size=4, pp=4, micro_batches=8)
MOE = Plan(world_size=64, tp=2, pp=2, ep=8, etp=1, params=80_000_000, expert_params=64_000_000)


@pytest.mark.parametrize(
    ("plan", "ratio"),
    [
        (PIPE, 3 / 11),
        (replace(PIPE, schedule=Schedule.GPIPE), 3 / 11),
        (replace(PIPE, virtual_stages=2), 3 / 19),
        (replace(PIPE, schedule=Schedule.ZB_H1), 3 / 27),
        (replace(PIPE, micro_batches=1), 3 / 4),
        (Plan(world_size=4), 0.0),
        (replace(PIPE, micro_batches=None), None),
        (Plan(world_size=16, tp=2, pp=2, global_batch=64, micro_batch=2), 1 / 9),
        (Plan(world_size=16, tp=2, pp=2, global_batch=63, micro_batch=2), None),
        (Plan(world_size=16, pp=2, global_batch=64, micro_batch=2, framework=Framework.TORCHTITAN), None),
    ],
)
def test_bubble_is_idle_time_over_all_time(plan: Plan, ratio: float | None) -> None:
    assert bubble_ratio(plan) == ratio


@pytest.mark.parametrize(("plan", "least"), [(PIPE, 12), (replace(PIPE, virtual_stages=2), 6), (replace(PIPE, pp=2), 4)])
def test_micro_batches_that_are_advised_are_the_fewest_that_suffice(plan: Plan, least: int) -> None:
    assert micro_batches_needed(plan, 0.2) == least
    enough, too_few = (bubble_ratio(replace(plan, micro_batches=count)) for count in (least, least - 1))
    assert enough is not None
    assert too_few is not None
    assert enough <= 0.2 < too_few
    assert list(warn_of_bubble(replace(plan, micro_batches=least))) == []
    assert len(list(warn_of_bubble(replace(plan, micro_batches=least - 1)))) == 1


def test_bubble_is_warned_of_with_what_would_help() -> None:
    (violation,) = warn_of_bubble(PIPE)
    assert violation.claim == "the stages are idle for 27% of a step: 8 micro-batches for pp 4"
    assert violation.advice.startswith("12 micro-batches or more bring it to 20%")


@pytest.mark.parametrize(
    ("plan", "claims"),
    [
        (Plan(world_size=32, tp=8), []),
        (Plan(world_size=32, tp=16), ["tp groups of 16 reach over 2 nodes of 8 ranks"]),
        (Plan(world_size=48, tp=6), ["tp groups of 6 reach over 2 nodes of 8 ranks"]),
        (Plan(world_size=32, tp=8, gpus_per_node=4), ["tp groups of 8 reach over 2 nodes of 4 ranks"]),
        (Plan(world_size=32, tp=2, order="dp-tp"), ["tp groups of 2 reach over 2 nodes of 8 ranks"]),
        (Plan(world_size=64, tp=8, ep=8, etp=1), []),
        (Plan(world_size=64, tp=16, ep=1), ["tp groups of 16 reach over 2 nodes of 8 ranks"]),  # and etp with it
        (Plan(world_size=64, tp=4, ep=1, etp=16), ["etp groups of 16 reach over 2 nodes of 8 ranks"]),
        (Plan(world_size=64, tp=8, ep=8), ["ep groups of 8 reach over 8 nodes of 8 ranks"]),
        (Plan(world_size=32, ep=16, framework=Framework.TORCHTITAN), ["ep groups of 16 reach over 2 nodes"]),
        (Plan(world_size=6, tp=6, gpus_per_node=8), []),
    ],
)
def test_axes_of_every_layer_that_leave_a_node_are_warned_of(plan: Plan, claims: list[str]) -> None:
    found = [violation.claim for violation in warn_of_nodes(plan)]
    assert len(found) == len(claims)
    assert all(claim in told for claim, told in zip(claims, found, strict=True))


def test_unequal_stages_are_warned_of_where_they_are_allowed() -> None:
    plan = Plan(world_size=8, pp=4, layers=30, framework=Framework.TORCHTITAN)
    (violation,) = warn_of_uneven_stages(plan)
    assert violation.claim.startswith("30 layers make 4 unequal stages")
    assert list(warn_of_uneven_stages(replace(plan, layers=32))) == []
    assert list(warn_of_uneven_stages(replace(plan, framework=Framework.MEGATRON))) == []  # invalid there


@pytest.mark.parametrize(
    ("plan", "weights", "gradients", "optimizer"),
    [
        (Plan(world_size=512, tp=8, pp=4, params=70 * 10**9), 4_375_000_000, 8_750_000_000, 1_640_625_000),
        (Plan(world_size=512, tp=8, pp=4, params=70 * 10**9, zero=0), 4_375_000_000, 8_750_000_000, 26_250_000_000),
        (Plan(world_size=512, tp=8, pp=4, cp=2, params=70 * 10**9), 4_375_000_000, 8_750_000_000, 1_640_625_000),
        (Plan(world_size=8, params=10**9, zero=0, framework=Framework.DEEPSPEED), 2 * 10**9, 2 * 10**9, 12 * 10**9),
        (Plan(world_size=8, params=10**9, zero=1, framework=Framework.DEEPSPEED), 2 * 10**9, 2 * 10**9, 1_500_000_000),
        (Plan(world_size=8, params=10**9, zero=2, framework=Framework.DEEPSPEED), 2 * 10**9, 250_000_000, 1_500_000_000),
        (Plan(world_size=8, params=10**9, zero=3, framework=Framework.DEEPSPEED), 250_000_000, 250_000_000, 1_500_000_000),
        (Plan(world_size=8, params=10**9, framework=Framework.TORCHTITAN), 500_000_000, 500_000_000, 10**9),
        (Plan(world_size=8, params=10**9, dp_replicate=2, framework=Framework.TORCHTITAN), 10**9, 10**9, 2 * 10**9),
        (MOE, 16_000_000, 32_000_000, 15_000_000),  # 16M/4 + 64M/16 = 8M parameters a rank
        (replace(MOE, ep=1, etp=2), 40_000_000, 80_000_000, 15_000_000),
        (Plan(world_size=3, tp=3, params=10), 7, 14, 40),  # rounded up
    ],
)
def test_bytes_of_a_rank_are_those_of_the_formulas(plan: Plan, weights: int, gradients: int, optimizer: int) -> None:
    assert bytes_per_rank(plan) == BytesPerRank(weights=weights, gradients=gradients, optimizer=optimizer)
    assert why_unknown(plan) is None


@pytest.mark.parametrize(("ep", "etp"), [(1, 1), (1, 2), (2, 1), (4, 2), (16, 1), (32, 1)])
def test_a_sharded_optimizer_takes_the_same_whatever_ep_is(ep: int, etp: int) -> None:
    optimizer = bytes_per_rank(replace(MOE, ep=ep, etp=etp)).optimizer
    assert optimizer is not None
    assert isclose(optimizer, 12 * 80_000_000 / 64)


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (Plan(world_size=8), "give --params"),
        (Plan(world_size=8, ep=2, params=10), "give --expert-params"),
        (Plan(world_size=8, tp=3, params=10), "the ranks cannot be placed"),
        (replace(MOE, ep=5), "the ranks cannot be placed"),
        (replace(MOE, etp=None, framework=Framework.DEEPSPEED), "enable_expert_tensor_parallelism"),
    ],
)
def test_bytes_that_do_not_follow_are_not_guessed(plan: Plan, why: str) -> None:
    assert bytes_per_rank(plan) == BytesPerRank(weights=None, gradients=None, optimizer=None)
    assert why in (why_unknown(plan) or "")


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (Plan(world_size=4, pp=4, micro_batch=1), "give --global-batch"),
        (Plan(world_size=4, pp=4, global_batch=8, micro_batch=1, framework=Framework.TORCHTITAN), "give --micro-batches"),
        (Plan(world_size=4, pp=3, global_batch=8, micro_batch=1), "the ranks cannot be placed"),
        (Plan(world_size=4, pp=4, global_batch=8, micro_batch=3), "the batch makes no whole number of micro-batches"),
        (PIPE, None),
    ],
)
def test_bubble_that_does_not_follow_is_not_guessed(plan: Plan, why: str | None) -> None:
    assert bubble.why_unknown(plan) == why
