"""What must hold so that ranks can be placed at all: the grid of the dense part, that of the experts, and their stages."""

from collections.abc import Iterator
from math import prod

from pardbg.watchdog.layout.divisors import fitting, multiples_around
from pardbg.watchdog.layout.frameworks import dense_grid, expert_grid, missing_axes
from pardbg.watchdog.layout.plan import DEFAULT_ORDER, Framework, Plan
from pardbg.watchdog.layout.words import describe_product, describe_sizes, invalid
from pardbg.watchdog.model.layout_report import LayoutRule, Violation


def check_world(plan: Plan) -> Iterator[Violation]:
    """The sizes of the axes multiply to the world; without --dp they divide it."""
    if plan.data_size is not None:
        return
    sizes, world = {"tp": plan.tp, "cp": plan.cp, "pp": plan.pp}, plan.world_size
    product = prod(sizes.values())
    worlds = f"a world of {multiples_around(world, product)} ranks"
    if plan.dp is None:
        claim = f"{describe_product(sizes)} does not divide the world of {world} ranks"
        yield invalid(LayoutRule.WORLD, claim, worlds)
        return
    claim = f"{describe_product({**sizes, 'dp': plan.dp})} ranks, but the world has {world}"
    yield invalid(LayoutRule.WORLD, claim, worlds if world % product else f"--dp {world // product}, or leave it out")


def check_replicas(plan: Plan) -> Iterator[Violation]:
    """--dp-replicate divides the data-parallel ranks."""
    if plan.data_size is not None and plan.data_size % plan.dp_replicate:
        yield invalid(
            LayoutRule.REPLICAS,
            f"--dp-replicate {plan.dp_replicate} does not divide the {plan.data_size} data-parallel ranks",
            f"--dp-replicate {fitting(plan.dp_replicate, plan.data_size)}",
        )


def check_order(plan: Plan) -> Iterator[Violation]:
    """Every axis with more than one rank a group is in the order."""
    missing = missing_axes(plan)
    if missing:
        names = " and ".join(missing)
        yield invalid(
            LayoutRule.ORDER,
            f"the order {plan.order} does not place {names}, and {describe_sizes(missing)} needs a place",
            f"name {names} in --order, as {DEFAULT_ORDER} does",
        )


def check_expert_grid(plan: Plan) -> Iterator[Violation]:
    """The expert axes divide what a pipeline stage has: its tp, cp and dp ranks together."""
    if plan.data_size is None or plan.data_size % plan.dp_replicate or plan.expert_data_size is not None:
        return  # well, or told already
    sizes = {"etp": plan.expert_tensor_size, "ep": plan.expert_size}
    stage = plan.world_size // plan.pp // plan.dp_replicate
    whose = "of a pipeline stage" if plan.dp_replicate == 1 else "of a pipeline stage's replica"
    room, rest = divmod(stage, plan.expert_tensor_size)
    advice = f"--ep {fitting(plan.expert_size, room)}" if not rest else f"--etp {fitting(plan.expert_tensor_size, stage)}"
    yield invalid(
        LayoutRule.EXPERT_GRID, f"{describe_product(sizes)} does not divide the {stage} ranks {whose} (tp x cp x dp)", advice
    )


def check_pipeline_groups(plan: Plan) -> Iterator[Violation]:
    """A stage of the dense part and one of the experts are the same ranks; Megatron asks for more where pp is not last."""
    dense, experts = dense_grid(plan), expert_grid(plan)
    if plan.framework is not Framework.MEGATRON or plan.pp == 1 or dense is None or experts is None:
        return
    stride, expert_stride = dense["pp"].stride, experts["pp"].stride
    dp, edp = dense["dp"].size, experts["edp"].size
    where = f"in the order {plan.order}, where pp is not last, "
    advice = f"put pp last in --order, as in {DEFAULT_ORDER}"
    if stride != expert_stride:
        claim = f"stages of the dense part would be {stride} ranks apart and those of the experts {expert_stride}"
        yield invalid(LayoutRule.PIPELINE_GROUPS, f"{where}{claim}", advice)
    elif dp != edp and plan.order is not None and not plan.order.endswith("pp"):
        claim = f"Megatron wants as many ranks in dp ({dp}) as in edp ({edp})"
        yield invalid(LayoutRule.PIPELINE_GROUPS, f"{where}{claim}", advice)
