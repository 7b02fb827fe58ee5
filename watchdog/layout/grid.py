"""Ranks counted through the axes of a layout: which ranks form the groups of an axis, and where a rank stands on it."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from pardbg.watchdog.model.report import Axis


class GridAxis(Axis, frozen=True, kw_only=True):
    """One axis of a grid of ``world_size`` ranks."""

    name: str
    world_size: int

    def groups(self) -> tuple[tuple[int, ...], ...]:
        """All groups of the axis, the one with the lowest rank first; members in group-rank order."""
        reach = self.size * self.stride
        firsts = (first for block in range(0, self.world_size, reach) for first in range(block, block + self.stride))
        return tuple(tuple(range(first, first + reach, self.stride)) for first in firsts)

    def place_of(self, rank: int) -> int:
        """The group rank that a global rank has on this axis."""
        return rank // self.stride % self.size

    def group_of(self, rank: int) -> tuple[int, ...]:
        """The group that holds the rank."""
        first = rank - self.place_of(rank) * self.stride
        return tuple(range(first, first + self.size * self.stride, self.stride))

    def nodes_reached(self, ranks_per_node: int) -> int:
        """Over how many nodes the widest group of the axis reaches, where ranks fill one node after the other."""
        if self.stride >= ranks_per_node:
            return self.size
        reach = self.size * self.stride
        blocks = range(0, min(self.world_size, reach * ranks_per_node), reach)  # from then on places in a node repeat
        starts = (block % ranks_per_node for block in blocks)
        latest = max(min(start + self.stride, ranks_per_node) - 1 for start in starts)
        return (latest + reach - self.stride) // ranks_per_node + 1


@dataclass(frozen=True)
class Grid:
    """Axes whose sizes multiply to the world, the fastest first: its neighbours are neighbouring ranks."""

    axes: tuple[GridAxis, ...]

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> "Grid":
        """By the sizes of the axes, the fastest first."""
        names, counts = list(sizes), list(sizes.values())
        strides = [prod(counts[:place]) for place in range(len(counts))]
        return cls(
            tuple(
                GridAxis(name=name, size=size, stride=stride, world_size=prod(counts))
                for name, size, stride in zip(names, counts, strides, strict=True)
            )
        )

    def __getitem__(self, name: str) -> GridAxis:
        return next(axis for axis in self.axes if axis.name == name)
