"""The form of the catalogue: what a metric is, and what metrics are about. Adding one is one entry in `catalogue.py`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from pardbg.dashboards.scene import Scene

S = TypeVar("S")
Row = tuple[tuple[str, ...], float]
"""The values of a metric's own labels, and the number."""


class Kind(str, Enum):
    """As Prometheus types them. The name of a counter ends in ``_total``, that of an info in ``_info``; an info is 1."""

    GAUGE = "gauge"
    COUNTER = "counter"
    INFO = "info"


class Unit(str, Enum):
    """Base units; a metric's name ends in its unit. ``NONE`` counts things, or is 0 or 1."""

    NONE = ""
    SECONDS = "seconds"
    BYTES = "bytes"
    RATIO = "ratio"
    WATTS = "watts"
    HERTZ = "hertz"
    CELSIUS = "celsius"


@dataclass(frozen=True)
class Metric(Generic[S]):
    """One metric. ``labels`` are its own, besides those of what it is about; ``rows`` reads it, nothing if it is not known."""

    name: str
    help: str
    rows: Callable[[S], Iterable[Row]]
    kind: Kind = Kind.GAUGE
    labels: tuple[str, ...] = ()

    @property
    def unit(self) -> Unit:
        """By the end of its name."""
        stem = self.name.removesuffix("_total")
        return next((unit for unit in Unit if unit.value and stem.endswith(f"_{unit.value}")), Unit.NONE)


@dataclass(frozen=True)
class Topic(Generic[S]):
    """What metrics are about: an agent, a job, a rank. ``label_values`` belong to ``labels``, all of them bounded.

    ``of`` finds all of its kind in a scene.
    """

    labels: tuple[str, ...]
    label_values: Callable[[S], tuple[str, ...]]
    of: Callable[[Scene], Iterable[S]]
    metrics: tuple[Metric[S], ...]


def one(read: Callable[[S], float | None]) -> Callable[[S], Iterable[Row]]:
    """The rows of a metric without labels of its own: one, or none if it is not known."""

    def rows(subject: S) -> Iterable[Row]:
        value = read(subject)
        return () if value is None else (((), value),)

    return rows


def each(read: Callable[[S], Iterable[tuple[str, float]]]) -> Callable[[S], Iterable[Row]]:
    """The rows of a metric with one label of its own."""

    def rows(subject: S) -> Iterable[Row]:
        return [((label,), value) for label, value in read(subject)]

    return rows
