"""The parts of a dashboard, in our words; `grafana_json.py` writes them in Grafana's."""

from dataclasses import dataclass
from enum import Enum

WIDTH = 24
"""Columns of a dashboard."""


class Shape(str, Enum):
    """How a panel draws: Grafana's plug-ins, all of them built in."""

    ROW = "row"
    STAT = "stat"
    TABLE = "table"
    SERIES = "timeseries"
    STATES = "state-timeline"
    HEAT = "status-history"
    BARS = "bargauge"


class ShownUnit(str, Enum):
    """Grafana's names of those that are used. ``FROM_NOW`` wants milliseconds; ``TEXT`` keeps 48213 from being 48.2 K."""

    COUNT = "short"
    SECONDS = "s"
    SHARE = "percentunit"
    BYTES = "bytes"
    WATTS = "watt"
    HERTZ = "hertz"
    CELSIUS = "celsius"
    FROM_NOW = "dateTimeFromNow"
    TEXT = "string"


class Color(str, Enum):
    """Colors by what they say."""

    GOOD = "green"
    INFO = "blue"
    WARNING = "orange"
    BAD = "red"
    PLAIN = "text"


@dataclass(frozen=True)
class Query:
    """One PromQL query. ``legend`` names its series by labels: ``rank {{rank}}``."""

    expr: str
    legend: str = ""


@dataclass(frozen=True)
class Named:
    """A value that is shown as a word."""

    value: int
    text: str
    color: Color


@dataclass(frozen=True)
class Column:
    """One column of a table: a label, or ``Value``.

    Attributes:
        width: in pixels; None: what is left.
        link: where a click leads, with the cell's text in ``${__value.text}``.
        names: values shown as words.
    """

    field: str
    title: str
    width: int | None = None
    unit: ShownUnit | None = None
    link: str = ""
    names: tuple[Named, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One panel.

    Attributes:
        empty: what it means if there is nothing to show, where that is normal: no incident, no GPU. Else empty.
        thresholds: from which value on which color; plain below.
        names: values shown as words.
        columns: of a table, in their order; what is not named is left out.
        width: of `WIDTH` columns; ``height`` in rows of 30 px.
        top: the highest value of the axis, if it is known.
        is_stacked: whether areas add up to a whole.
        bottom: the lowest value of the axis. Of `Shape.HEAT`, ``bottom`` and ``top`` have the outermost colors.
        is_low_bad: whether the lowest values of `Shape.HEAT` are the hot ones.
        worst_first: the title of the column that a table is sorted by, highest first; empty: as it comes.
    """

    title: str
    description: str
    shape: Shape
    queries: tuple[Query, ...]
    unit: ShownUnit = ShownUnit.COUNT
    empty: str = ""
    thresholds: tuple[tuple[float, Color], ...] = ()
    names: tuple[Named, ...] = ()
    columns: tuple[Column, ...] = ()
    width: int = 12
    height: int = 8
    top: float | None = None
    is_stacked: bool = False
    bottom: float | None = None
    is_low_bad: bool = False
    worst_first: str = ""

    @property
    def is_instant(self) -> bool:
        """Whether it shows the present, not the course."""
        return self.shape in {Shape.TABLE, Shape.BARS, Shape.STAT}


@dataclass(frozen=True)
class Row:
    """A heading, with the panels below it."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Choice:
    """A variable that the reader chooses. ``query`` is Grafana's ``label_values(...)``; ``has_all`` allows all at once."""

    name: str
    label: str
    query: str
    has_all: bool = False


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    """One dashboard. ``uid`` never changes: it is its address. ``events`` marks times in all its curves."""

    uid: str
    title: str
    description: str
    choices: tuple[Choice, ...]
    rows: tuple[Row, ...]
    events: Query | None = None
    links: tuple[tuple[str, str], ...] = ()
