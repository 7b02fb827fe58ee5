"""How a simulated job splits its ranks: the parallel axes, and the process groups Megatron creates for them, in its order."""

from dataclasses import dataclass, field
from functools import cached_property

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.layout.grid import Grid

WORLD = "world"
AXIS_DESCRIPTIONS = {
    "dp": "DATA_PARALLEL_GROUP",
    "tp": "TENSOR_MODEL_PARALLEL_GROUP",
    "pp": "PIPELINE_MODEL_PARALLEL_GROUP",
    "ep": "EXPERT_MODEL_PARALLEL_GROUP",
}
_MOST_RANKS = 65_536


@dataclass(frozen=True, eq=False)
class Group:
    """A process group as one rank sees it, ``ranks`` in group-rank order.

    Compared by identity: ranks meet in a communicator only if they hold the same object. Two ranks that disagree about a
    group's members hold two groups of one name.
    """

    name: str
    description: str
    axis: str
    ranks: tuple[int, ...]

    @cached_property
    def _group_ranks(self) -> dict[int, int]:
        return {rank: position for position, rank in enumerate(self.ranks)}

    @cached_property
    def member_text(self) -> str:
        """The members as a dump has them."""
        return str(list(self.ranks))

    def group_rank(self, rank: int) -> int:
        """Where the (global) rank stands in this group."""
        return self._group_ranks[rank]


@dataclass(frozen=True)
class Coordinates:
    """Where a rank stands on the axes."""

    tp: int
    dp: int
    pp: int


@dataclass(frozen=True)
class ParallelLayout:
    """Sizes of the axes; tp varies fastest, then dp, then pp, as in Megatron. ``ep`` cuts each dp group into blocks."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    groups: tuple[Group, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if min(self.tp, self.pp, self.dp, self.ep) < 1:
            raise InputError(f"every axis of {self.text} must be at least 1")
        if self.dp % self.ep:
            raise InputError(f"ep={self.ep} does not divide dp={self.dp}: expert groups are blocks of data-parallel ranks")
        if not 2 <= self.world_size <= _MOST_RANKS:
            raise InputError(f"{self.text} makes {self.world_size} ranks; a job has 2 to {_MOST_RANKS}")
        object.__setattr__(self, "groups", self._create_groups())

    @property
    def text(self) -> str:
        """The form `--layout` reads."""
        return f"tp={self.tp},pp={self.pp},dp={self.dp},ep={self.ep}"

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.tp * self.dp * self.pp

    def coordinates(self, rank: int) -> Coordinates:
        """Where the rank stands on each axis."""
        return Coordinates(**{axis.name: axis.place_of(rank) for axis in self._grid.axes})

    def groups_by_axis(self, rank: int) -> dict[str, Group]:
        """The group of each axis that the rank is in. Axes of size 1 have none."""
        return self._memberships[rank]

    @cached_property
    def _grid(self) -> Grid:
        return Grid.of({"tp": self.tp, "dp": self.dp, "pp": self.pp})

    @cached_property
    def _memberships(self) -> tuple[dict[str, Group], ...]:
        memberships: tuple[dict[str, Group], ...] = tuple({} for _ in range(self.world_size))
        for group in self.groups:
            for rank in group.ranks:
                memberships[rank][group.axis] = group
        return memberships

    def _create_groups(self) -> tuple[Group, ...]:
        groups = [Group("0", "default_pg", WORLD, tuple(range(self.world_size)))]
        for axis, members in self._members():
            groups.append(Group(str(len(groups)), AXIS_DESCRIPTIONS[axis], axis, members))
        return tuple(groups)

    def _members(self) -> list[tuple[str, tuple[int, ...]]]:
        replicas = self._grid["dp"].groups()
        by_axis = {
            "dp": replicas,
            "tp": self._grid["tp"].groups(),
            "pp": self._grid["pp"].groups(),
            "ep": [ranks[first : first + self.ep] for ranks in replicas for first in range(0, self.dp, self.ep)],
        }
        return [(axis, ranks) for axis, members in by_axis.items() for ranks in members if len(ranks) > 1]


def default_layout(rank_count: int, *, has_pipeline: bool = True) -> ParallelLayout:
    """A layout such as people would choose: some of each axis from 16 ranks on, plain data parallel where nothing divides."""
    tp = next((size for size, least in ((8, 256), (4, 64), (2, 8)) if rank_count >= least and rank_count % size == 0), 1)
    stages = ((4, 256), (2, 16)) if has_pipeline else ()
    pp = next((size for size, least in stages if rank_count >= least and rank_count % (tp * size) == 0), 1)
    dp = rank_count // (tp * pp)
    ep = next((size for size in (8, 4, 2) if dp % size == 0 and dp >= 2 * size), 1)
    return ParallelLayout(tp=tp, pp=pp, dp=dp, ep=ep)


def parse_layout(text: str, rank_count: int) -> ParallelLayout:
    """``tp=2,pp=2,dp=4,ep=2`` -> layout. An axis not named has size 1, but dp takes what is left.

    Raises:
        InputError: if the text is not of that form or does not make ``rank_count`` ranks.
    """
    sizes: dict[str, int] = {}
    for part in text.split(","):
        axis, equals, size = part.strip().partition("=")
        if not equals or axis not in AXIS_DESCRIPTIONS or not size.isdecimal() or axis in sizes:
            raise InputError(f"--layout {text!r}: {part!r} is not one of tp=N, pp=N, dp=N, ep=N (each once)")
        sizes[axis] = int(size)
    if "dp" not in sizes:
        sizes["dp"] = max(1, rank_count // max(1, sizes.get("tp", 1) * sizes.get("pp", 1)))
    layout = ParallelLayout(**sizes)
    if layout.world_size != rank_count:
        raise InputError(f"--layout {text!r} makes {layout.world_size} ranks, --ranks asks for {rank_count}")
    return layout
