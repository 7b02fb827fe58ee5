"""All families of the casebook, by number, and the cases that they make."""

from collections.abc import Iterator

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.sim.casebook import (
    arguments,
    busy,
    compiling,
    data_dependent,
    devices,
    fabric,
    killed,
    left_early,
    locks,
    lookers,
    order,
    rank_zero_only,
    recorders,
    setting_up,
    stragglers,
    transfers,
)
from pardbg.watchdog.sim.casebook.case import Case, Family, Variant
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.dress import dress

_MODULES = (
    arguments,
    busy,
    compiling,
    data_dependent,
    devices,
    fabric,
    killed,
    left_early,
    locks,
    lookers,
    order,
    rank_zero_only,
    recorders,
    setting_up,
    stragglers,
    transfers,
)
FAMILIES: tuple[Family, ...] = tuple(
    sorted((family for module in _MODULES for family in module.FAMILIES), key=lambda family: int(family.number[1:]))
)


class Instance(Noun, frozen=True, kw_only=True):
    """One case to be built. Even seeds are for tuning; nobody looks at odd ones while rules are made."""

    family: Family
    variant: Variant
    seed: int

    @property
    def name(self) -> str:
        """``C01/one-batch-less/4``."""
        return f"{self.family.number}/{self.variant.name}/{self.seed}"

    @property
    def is_held_out(self) -> bool:
        """Whether it belongs to the half that nobody tunes on."""
        return self.seed % 2 == 1

    def build(self) -> Case:
        """Makes the files and the truth. Equal instances are equal to the byte."""
        name = f"{self.family.number}/{self.variant.name}"
        return dress(self.variant.build(Draw(name, self.seed)), Draw(f"{name}/dress", self.seed))


def instances(seeds: range) -> Iterator[Instance]:
    """Every variant of every family, once for each seed."""
    for family in FAMILIES:
        for variant in family.variants:
            for seed in seeds:
                yield Instance(family=family, variant=variant, seed=seed)
