"""Warnings: the layout works, and costs more than it need."""

from collections.abc import Iterator

from pardbg.watchdog.layout.bubble import bubble_ratio, micro_batches_needed
from pardbg.watchdog.layout.frameworks import dense_grid, expert_grid
from pardbg.watchdog.layout.plan import Framework, Plan
from pardbg.watchdog.layout.words import warning
from pardbg.watchdog.model.layout_report import LayoutRule, Violation

BUBBLE_WORTH_TELLING = 0.2
"""As a part of a step; with 1F1B that is fewer than four micro-batches for each stage but the first."""


def warn_of_nodes(plan: Plan) -> Iterator[Violation]:
    """The axes that communicate in every layer stay on a node, where links are fastest."""
    grids = [dense_grid(plan), expert_grid(plan) if plan.has_experts else None]
    axes = {axis.name: axis for grid in grids if grid is not None for axis in grid.axes}
    for name in ("tp", "etp", "ep"):
        axis = axes.get(name)
        nodes = axis.nodes_reached(plan.gpus_per_node) if axis is not None else 1
        if axis is None or nodes == 1 or (name == "etp" and plan.etp is None):  # etp is tp then, and told
            continue
        what = "every MoE layer's all-to-all of tokens" if name == "ep" else "every layer's collective of activations"
        yield warning(
            LayoutRule.NODES,
            f"{name} groups of {axis.size} reach over {nodes} nodes of {plan.gpus_per_node} ranks: {what} leaves the node",
            _how_to_stay(plan, name, axis.stride),
        )


def _how_to_stay(plan: Plan, name: str, stride: int) -> str:
    room = plan.gpus_per_node // stride
    if room > 1:
        return f"--{name} at most {room}, and a divisor of it, stays on a node"
    if name == "ep" and plan.framework is Framework.MEGATRON and plan.expert_tensor_size > 1:
        return f"a smaller --etp (now {plan.expert_tensor_size}) brings its ranks closer together"
    return f"its ranks are {stride} apart: smaller sizes of the faster axes bring them closer together"


def warn_of_bubble(plan: Plan) -> Iterator[Violation]:
    """Stages are idle for no more than a fifth of a step."""
    ratio = bubble_ratio(plan)
    if ratio is not None and ratio > BUBBLE_WORTH_TELLING:
        least = micro_batches_needed(plan, BUBBLE_WORTH_TELLING)
        yield warning(
            LayoutRule.BUBBLE,
            f"the stages are idle for {ratio:.0%} of a step: {plan.pipeline_micro_batches} micro-batches for pp {plan.pp}",
            f"{least} micro-batches or more bring it to {BUBBLE_WORTH_TELLING:.0%}; so does a smaller --pp, or interleaving",
        )


def warn_of_uneven_stages(plan: Plan) -> Iterator[Violation]:
    """Equal stages wait for nobody. Megatron refuses others unless told."""
    stages = plan.pp * plan.virtual_stages
    if plan.framework is not Framework.MEGATRON and plan.layers is not None and plan.layers % stages and plan.layers > stages:
        yield warning(
            LayoutRule.UNEVEN_STAGES,
            f"{plan.layers} layers make {stages} unequal stages: the others wait for the longest",
            "a --pp that divides the layers, unless the first and last stage are shorter on purpose",
        )


def find_costs(plan: Plan) -> Iterator[Violation]:
    """All warnings. A new one is a function and its name here."""
    for warn in (warn_of_nodes, warn_of_bubble, warn_of_uneven_stages):
        yield from warn(plan)
