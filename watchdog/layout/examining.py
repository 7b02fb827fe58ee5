"""From a plan to the report on it."""

from collections.abc import Iterator

from pardbg.watchdog.layout import bubble, memory
from pardbg.watchdog.layout.costs import find_costs
from pardbg.watchdog.layout.frameworks import dense_grid, expert_grid
from pardbg.watchdog.layout.grid import Grid
from pardbg.watchdog.layout.nearest import MOST_CHANGES, find_nearest
from pardbg.watchdog.layout.plan import Plan
from pardbg.watchdog.layout.rules import broken_rules
from pardbg.watchdog.layout.standing import place_rank
from pardbg.watchdog.model.layout_report import AxisGroups, LayoutReport


def examine_layout(plan: Plan, rank: int | None = None) -> LayoutReport:
    """What there is to say of it, and of one rank if one is named."""
    broken = tuple(broken_rules(plan))
    dense, experts = dense_grid(plan), expert_grid(plan) if plan.has_experts else None
    nearest = find_nearest(plan) if broken else ()
    notes = [f"nothing valid was found that changes at most {MOST_CHANGES} options"] if broken and not nearest else []
    return LayoutReport(
        valid=not broken,
        violations=(*broken, *find_costs(plan)),
        axes=_groups(dense),
        expert_axes=_groups(experts),
        bubble_ratio=bubble.bubble_ratio(plan),
        bytes_per_rank=memory.bytes_per_rank(plan),
        nearest=nearest,
        world_size=plan.world_size,
        micro_batches=plan.pipeline_micro_batches,
        rank=place_rank(plan, rank, dense, experts) if rank is not None and dense is not None else None,
        notes=(*notes, *_notes(plan)),
    )


def _groups(grid: Grid | None) -> dict[str, AxisGroups] | None:
    if grid is None:
        return None
    return {axis.name: AxisGroups(size=axis.size, stride=axis.stride, groups=axis.groups()) for axis in grid.axes}


def _notes(plan: Plan) -> Iterator[str]:
    """What the figures rest on, or why there are none."""
    no_bubble, no_bytes = bubble.why_unknown(plan), memory.why_unknown(plan)
    if no_bubble is not None:
        yield f"the bubble is not known: {no_bubble}"
    elif plan.pp > 1:
        yield f"the bubble is that of {plan.pp} equal stages; schedule: {plan.pipeline_schedule.value}"
    if no_bytes is not None:
        yield f"bytes per rank are not known: {no_bytes}"
    else:
        shared = ("nothing", "the optimizer", "the optimizer and gradients", "everything")[plan.zero_stage]
        yield f"bytes are the mean over stages, with {shared} shared out (ZeRO {plan.zero_stage}); activations come on top"
