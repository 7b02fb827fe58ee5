"""Where one rank stands in a layout, who is in its groups, and which experts it holds."""

from pardbg.watchdog.layout.grid import Grid
from pardbg.watchdog.layout.plan import Plan
from pardbg.watchdog.model.layout_report import RankPlace


def place_rank(plan: Plan, rank: int, dense: Grid, experts: Grid | None) -> RankPlace:
    """Ranks fill one node after the other; experts lie in blocks, the first on the rank with ep coordinate 0."""
    axes = {axis.name: axis for grid in (dense, experts) if grid is not None for axis in grid.axes}
    node_rank, local_rank = divmod(rank, plan.gpus_per_node)
    coords = {name: axis.place_of(rank) for name, axis in axes.items()}
    return RankPlace(
        rank=rank,
        node_rank=node_rank,
        local_rank=local_rank,
        coords=coords,
        groups={name: axis.group_of(rank) for name, axis in axes.items()},
        experts=_held(plan, coords["ep"]) if "ep" in coords else None,
    )


def _held(plan: Plan, place: int) -> tuple[int, ...] | None:
    if plan.experts is None or plan.experts % plan.expert_size:
        return None
    count = plan.experts // plan.expert_size
    return tuple(range(place * count, (place + 1) * count))
