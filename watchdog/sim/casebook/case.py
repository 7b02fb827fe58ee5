"""What a case is: the files of one job, what is told of it in words, and the right answer. A family makes many cases."""

from collections.abc import Callable
from enum import Enum

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.truth import Truth


class Case(Noun, frozen=True, kw_only=True):
    """One job. ``files`` by name; ``scenario`` tells without a verdict what somebody at the job would know.

    ``is_ended_unsaid``: the evidence does not tell whether the job still hangs or has been ended.
    """

    scenario: str
    files: dict[str, bytes]
    truth: Truth
    is_ended_unsaid: bool = False


class Role(str, Enum):
    """What a variant is to its family."""

    REPORTED = "reported"  # what the report describes
    NEAR_MISS = "near miss"  # the same signs, another verdict
    LESS_SEEN = "less seen"  # the same fault, some evidence missing


class Variant(Noun, frozen=True, kw_only=True):
    """One form of a family. ``reads`` are the sources without which it cannot be told."""

    name: str
    build: Callable[[Draw], Case]
    role: Role = Role.REPORTED
    reads: tuple[CollectorName, ...] = ()


class Family(Noun, frozen=True, kw_only=True):
    """All that one entry of the casebook stands for, ``number`` as there. The first variant is what was reported."""

    number: str
    title: str
    variants: tuple[Variant, ...]


def reported(build: Callable[[Draw], Case], *reads: CollectorName) -> Variant:
    """What the report describes."""
    return Variant(name=_name(build), build=build, reads=reads)


def near_miss(build: Callable[[Draw], Case], *reads: CollectorName) -> Variant:
    """The same signs, another verdict."""
    return Variant(name=_name(build), build=build, role=Role.NEAR_MISS, reads=reads)


def less_seen(build: Callable[[Draw], Case], *reads: CollectorName) -> Variant:
    """The same fault with some of the evidence missing."""
    return Variant(name=_name(build), build=build, role=Role.LESS_SEEN, reads=reads)


def _name(build: Callable[[Draw], Case]) -> str:
    return build.__name__.lstrip("_").replace("_", "-")
