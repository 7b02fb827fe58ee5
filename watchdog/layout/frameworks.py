"""How each framework lays the ranks of a plan out: one grid for the dense part of a model, one for its experts.

Both grids have the same pipeline stages. Sources: Megatron-Core's RankGenerator, torchtitan's ParallelDims (ep is taken from
the fastest axes), DeepSpeed's groups (as Megatron's in its default order, its sequence parallelism in the place of cp).
"""

from pardbg.watchdog.layout.grid import Grid
from pardbg.watchdog.layout.plan import Framework, Plan


def missing_axes(plan: Plan) -> dict[str, int]:
    """The axes with more than one rank a group that the order leaves out, and their sizes."""
    if plan.order is None:
        return {}
    data = max(plan.data_size or plan.dp or 1, plan.expert_data_size or 1)
    sizes = {"tp": max(plan.tp, plan.expert_tensor_size), "cp": plan.cp, "ep": plan.expert_size, "dp": data, "pp": plan.pp}
    return {axis: size for axis, size in sizes.items() if size > 1 and axis not in plan.order.split("-")}


def dense_grid(plan: Plan) -> Grid | None:
    """The grid of the part that is no expert's; None where there is none."""
    dp = plan.data_size
    if dp is None or dp % plan.dp_replicate or missing_axes(plan):
        return None
    if plan.framework is Framework.TORCHTITAN:
        shards = {"dp_shard": dp // plan.dp_replicate, "dp_replicate": plan.dp_replicate}
        return Grid.of({"tp": plan.tp, "cp": plan.cp, **shards, "pp": plan.pp})
    sizes = {"tp": plan.tp, "cp": plan.cp, "dp": dp, "pp": plan.pp}
    names = {"cp": "sp"} if plan.framework is Framework.DEEPSPEED else {}
    return Grid.of({names.get(axis, axis): sizes[axis] for axis in plan.axis_order if axis in sizes})


def expert_grid(plan: Plan) -> Grid | None:
    """The grid of the experts; None where there is none. Of a model without experts: the one that Megatron makes anyway."""
    edp = plan.expert_data_size
    if edp is None or missing_axes(plan):
        return None
    if plan.framework is Framework.TORCHTITAN:
        return Grid.of({"ep": plan.expert_size, "efsdp": edp, "dp_replicate": plan.dp_replicate, "pp": plan.pp})
    sizes = {"tp": plan.expert_tensor_size, "ep": plan.expert_size, "dp": edp, "pp": plan.pp}
    names = {"dp": "edp"} if plan.framework is Framework.DEEPSPEED else {"tp": "etp", "dp": "edp"}
    return Grid.of({names.get(axis, axis): sizes[axis] for axis in plan.axis_order if axis in sizes})
