"""All queries of a rendered dashboard, wherever Grafana keeps them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|([^\W\d]\w*))")  # `$1` is of label_replace
_LABEL_VALUES = re.compile(r"label_values\((?:(.*),\s*)?(\w+)\)")
INTERVALS = {"__rate_interval": "5m", "__interval": "15s", "__range": "1h"}
"""As Grafana might put them in. Five minutes: enough for slow scrapes."""


@dataclass(frozen=True)
class Asked:
    """One query. ``where`` names the panel; ``may_be_empty`` if having nothing to show is normal there."""

    where: str
    expr: str
    is_instant: bool
    may_be_empty: bool


@dataclass(frozen=True)
class Variable:
    """A choice among the values of ``label`` in the series that ``selector`` finds (all series if empty)."""

    name: str
    selector: str
    label: str
    has_all: bool


def queries_of(dashboard: dict[str, Any]) -> Iterator[Asked]:
    """Those of the panels, then those of its marks."""
    for panel in dashboard["panels"]:
        is_calm = "noValue" in panel.get("fieldConfig", {}).get("defaults", {})
        for target in panel.get("targets", ()):
            yield Asked(panel["title"], target["expr"], target.get("instant", False), is_calm)
    for marks in dashboard["annotations"]["list"]:
        yield Asked(f"marks: {marks['name']}", marks["expr"], is_instant=False, may_be_empty=True)


def variables_of(dashboard: dict[str, Any]) -> Iterator[Variable]:
    """Those that are asked for by ``label_values``, in their order: later ones may use earlier ones."""
    for variable in dashboard["templating"]["list"]:
        query = variable.get("query")
        found = _LABEL_VALUES.fullmatch(query["query"]) if isinstance(query, dict) else None
        if found:
            yield Variable(variable["name"], found[1] or "", found[2], variable.get("includeAll", False))


def fill(expr: str, values: dict[str, str]) -> str:
    """Puts in the values of variables, as Grafana does for one that is not multiple.

    Raises:
        KeyError: if there is no such variable.
    """
    return _VARIABLE.sub(lambda found: values[found[1] or found[2]].replace("\\", "\\\\").replace('"', '\\"'), expr)
