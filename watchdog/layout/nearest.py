"""Valid layouts near an invalid one.

The nearest change the fewest options; of those, the ones with the fewest warnings (`costs.py`); of those, the ones with the
smallest factor by which sizes grow or shrink, all factors multiplied. Options that split nothing yet stay as they are, and so
do the world and the model.
"""

from collections.abc import Iterator
from itertools import combinations, product
from math import prod

from msgspec.structs import replace

from pardbg.watchdog.layout.costs import find_costs
from pardbg.watchdog.layout.divisors import divisors
from pardbg.watchdog.layout.frameworks import dense_grid, expert_grid
from pardbg.watchdog.layout.grid import Grid
from pardbg.watchdog.layout.plan import DEFAULT_ORDER, Plan
from pardbg.watchdog.layout.rules import is_valid
from pardbg.watchdog.model.layout_report import NearbyLayout

SHOWN = 3
MOST_CHANGES = 4
_TRIED = {1: 32, 2: 8, 3: 4, 4: 3}
"""Values of each option, the nearest ones, by how many options change: what is tried stays some thousand plans."""
_AXES = ("dp", "etp", "ep", "tp", "cp", "pp", "dp_replicate")
"""Of equally near ones, those first that the others follow from."""

Changes = dict[str, int | str]


def find_nearest(plan: Plan, most: int = SHOWN) -> tuple[NearbyLayout, ...]:
    """At most so many, the nearest first; empty where none is near."""
    values = {option: near for option, near in _values(plan) if near}
    for count, tried in _TRIED.items():
        valid = [
            (changes, changed)
            for changes in (*_changes(values, count, tried), *_changes_with_batch(plan, values, count, tried))
            if is_valid(changed := replace(plan, **changes))
        ]
        if valid:
            valid.sort(key=lambda item: (len(list(find_costs(item[1]))), _factor(plan, item[0])))
            return tuple(_describe(changes, changed) for changes, changed in valid[:most])
    return ()


def _values(plan: Plan) -> Iterator[tuple[str, list[int | str]]]:
    """The options that may change, and the values to try, the nearest first."""
    yield "order", [DEFAULT_ORDER] if plan.order not in {None, DEFAULT_ORDER} else []
    for option in _AXES:
        yield option, _near(getattr(plan, option), divisors(plan.world_size))
    yield "zero", [1] if (plan.zero or 0) > 1 else []
    yield "virtual_stages", _near(plan.virtual_stages, divisors(plan.layers or 1))
    yield "micro_batch", _near(plan.micro_batch, divisors(plan.global_batch or 1))


def _near(size: int | None, sizes: tuple[int, ...]) -> list[int | str]:
    if size is None or size == 1:
        return []
    return [*sorted((other for other in sizes if other != size), key=lambda other: (_ratio(size, other), other))]


def _changes(values: dict[str, list[int | str]], count: int, tried: int) -> Iterator[Changes]:
    for options in combinations(values, count):
        for chosen in product(*(values[option][:tried] for option in options)):
            yield dict(zip(options, chosen, strict=True))


def _changes_with_batch(plan: Plan, values: dict[str, list[int | str]], count: int, tried: int) -> Iterator[Changes]:
    """The last change makes the global batch fit the others."""
    if plan.global_batch is None:
        return
    for changes in _changes(values, count - 1, tried):
        changed = replace(plan, **changes)
        if changed.data_size is not None:
            rounds = changed.pp if changed.virtual_stages > 1 else 1
            step = (changed.micro_batch or 1) * (changed.micro_batches or rounds) * changed.data_size
            below = plan.global_batch // step * step
            yield from ({**changes, "global_batch": batch} for batch in (below, below + step) if batch)


def _factor(plan: Plan, changes: Changes) -> float:
    return prod(_ratio(getattr(plan, option), value) for option, value in changes.items() if isinstance(value, int))


def _ratio(size: int, other: int) -> float:
    return max(size, other) / min(size, other)


def _describe(changes: Changes, plan: Plan) -> NearbyLayout:
    return NearbyLayout(
        changes=changes,
        axes=_sizes(dense_grid(plan)) or {},
        expert_axes=_sizes(expert_grid(plan)) if plan.has_experts else None,
    )


def _sizes(grid: Grid | None) -> dict[str, int] | None:
    return None if grid is None else {axis.name: axis.size for axis in grid.axes}
