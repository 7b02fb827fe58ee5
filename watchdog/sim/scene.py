"""The stage on which a fault is set up: the programs of all ranks, ready to be altered, and what else will be seen of them."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.sim.callsites import host_site
from pardbg.watchdog.sim.instruction import HostBlock, Instruction, Mark, Program, Style
from pardbg.watchdog.sim.layout import WORLD, Group, ParallelLayout
from pardbg.watchdog.sim.program import HALF_WAY, training_step
from pardbg.watchdog.sim.recipe import Recipe

_AXES_TO_TRY = ("dp", "ep", "tp", "pp", WORLD)


@dataclass(frozen=True)
class ProcessState:
    """What `job.json` says of a rank's process: a letter of ``/proc/PID/stat``, or ``gone`` with its exit code."""

    state: str = "S"
    exit_code: int | None = None


@dataclass
class Scene:
    """Altered by exactly one fault, then played. Random choices come from the recipe's seed."""

    recipe: Recipe
    layout: ParallelLayout
    random: random.Random
    programs: dict[int, Program]
    late_groups: dict[int, list[Group]] = field(default_factory=dict)
    recorders_off: set[int] = field(default_factory=set)
    ring_sizes: dict[int, int] = field(default_factory=dict)
    missing: set[int] = field(default_factory=set)
    processes: dict[int, ProcessState] = field(default_factory=dict)
    logs: dict[int, str] = field(default_factory=dict)
    shows_stacks: bool = False
    has_history: bool = True
    has_skew: bool = False

    @property
    def ranks(self) -> range:
        """All global ranks."""
        return range(self.layout.world_size)

    @property
    def world(self) -> Group:
        """The default group."""
        return self.layout.groups[0]

    @property
    def is_gloo(self) -> bool:
        """Whether operations are synchronous and P2P goes unrecorded."""
        return self.recipe.backend == "gloo"

    def pick_group(self, at_least: int, axes: tuple[str, ...] = _AXES_TO_TRY) -> Group:
        """A random group of the first axis whose groups have enough members."""
        for axis in axes:
            fitting = [group for group in self.layout.groups if group.axis == axis and len(group.ranks) >= at_least]
            if fitting:
                return self.random.choice(fitting)
        raise InputError(
            f"{self.recipe.fault} needs a {' or '.join(axes)} group of {at_least} ranks; {self.layout.text} has none",
            remedy="ask for more --ranks, or another --layout",
        )

    def pick_ranks(self, count: int, among: Iterable[int] | None = None) -> list[int]:
        """Distinct random ranks, in random order."""
        choice = sorted(self.ranks if among is None else among)
        if len(choice) < count:
            raise InputError(f"{self.recipe.fault} needs {count} ranks to choose from; {self.layout.text} offers {len(choice)}")
        return self.random.sample(choice, count)

    def pick_rank(self, among: Iterable[int] | None = None) -> int:
        """One random rank."""
        return self.pick_ranks(1, among)[0]

    def siblings(self, group: Group) -> list[Group]:
        """All groups of the same axis: what one does, all do."""
        return [other for other in self.layout.groups if other.axis == group.axis]

    def create_group(self, ranks: Iterable[int], description: str = "undefined") -> Group:
        """A group made in the course of training, by all ranks, after those of the layout."""
        count = len(self.layout.groups) + len({group.name for groups in self.late_groups.values() for group in groups})
        group = Group(str(count), description, "late", tuple(ranks))
        self.join(group, group.ranks)
        return group

    def join(self, group: Group, ranks: Iterable[int]) -> None:
        """Has the ranks know the group as one of theirs."""
        for rank in ranks:
            self.late_groups.setdefault(rank, []).append(group)

    def insert(self, rank: int, *instructions: Instruction, mark: str = HALF_WAY) -> None:
        """Adds to the rank's program, before the mark and after what was inserted there earlier."""
        program = self.programs[rank]
        place = next(at for at, instruction in enumerate(program) if isinstance(instruction, Mark) and instruction.name == mark)
        program[place:place] = instructions

    def everyone(self, group: Group, issue: Callable[[int, Group], Program]) -> None:
        """Inserts ``issue(rank, its group)`` on the members of the group and of its siblings."""
        for sibling in self.siblings(group) if group in self.layout.groups else [group]:
            for rank in sibling.ranks:
                self.insert(rank, *issue(rank, sibling))

    def block(self, rank: int, where: str = "host", mark: str = HALF_WAY) -> None:
        """The rank's host never gets past the mark."""
        self.insert(rank, HostBlock(host_site(where)), mark=mark)


def set_scene(recipe: Recipe, style: Style) -> Scene:
    """A healthy job as the recipe wants it."""
    layout = recipe.parallel_layout
    programs = {rank: training_step(layout, rank, style, recipe.seed) for rank in range(layout.world_size)}
    return Scene(recipe, layout, random.Random(f"{recipe.fault}/{recipe.seed}"), programs, has_skew=recipe.has_skew)
