"""Which parallel axis a process group serves, and where a rank lies on every axis.

The names are those that frameworks give their groups: Megatron's descriptions, the dimensions of a device mesh, plain axis
names.
"""

import re

from pardbg.watchdog.graph.groups import Group, Groups
from pardbg.watchdog.model.report import Axis, LayoutRef

PIPELINE = "pp"
MEGATRON_AXES = {
    "TENSOR_MODEL_PARALLEL_GROUP": "tp",
    "PIPELINE_MODEL_PARALLEL_GROUP": PIPELINE,
    "DATA_PARALLEL_GROUP": "dp",
    "DATA_PARALLEL_GROUP_WITH_CP": "dp",
    "CONTEXT_PARALLEL_GROUP": "cp",
    "EXPERT_MODEL_PARALLEL_GROUP": "ep",
    "EXPERT_DATA_PARALLEL_GROUP": "edp",
    "EXPERT_TENSOR_PARALLEL_GROUP": "etp",
}
_PLAIN_AXIS = re.compile(r"^(?:mesh_)?((?:tp|pp|dp|cp|ep|sp|edp|etp)(?:_replicate|_shard)?)$")


def axis_of(group: Group) -> str | None:
    """The axis a group serves, from its description; None for the world and for combined groups."""
    if group.desc in MEGATRON_AXES:
        return MEGATRON_AXES[group.desc]
    match = _PLAIN_AXIS.match(group.desc)
    return match[1] if match else None


def coordinates(groups: Groups) -> dict[int, dict[str, int]]:
    """Every rank's place on each axis: its position within its group of that axis."""
    coords: dict[int, dict[str, int]] = {}
    for group in groups.groups:
        axis = axis_of(group)
        if axis is not None and not group.is_inferred and not group.claims:
            for position, rank in enumerate(group.ranks):
                coords.setdefault(rank, {}).setdefault(axis, position)
    return coords


def find_layout(groups: Groups) -> LayoutRef | None:
    """The axes whose groups are all of one size and regular stride."""
    shapes: dict[str, set[tuple[int, int]]] = {}
    for group in groups.groups:
        axis = axis_of(group)
        if axis is not None and not group.is_inferred:
            strides = {b - a for a, b in zip(group.ranks, group.ranks[1:], strict=False)} or {1}
            shapes.setdefault(axis, set()).add((len(group.ranks), strides.pop() if len(strides) == 1 else 0))
    regular = {axis: next(iter(shape)) for axis, shape in sorted(shapes.items()) if len(shape) == 1}
    axes = {axis: Axis(size=size, stride=stride) for axis, (size, stride) in regular.items() if stride}
    return LayoutRef(axes=axes, source="descriptions of the process groups") if axes else None
