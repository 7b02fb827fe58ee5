"""Asks a real Prometheus every query of every dashboard: what is refused, and what has nothing to show."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pardbg.dashboards.alert import Alert
from pardbg.dashboards.asked import INTERVALS, fill, queries_of, variables_of
from pardbg.dashboards.prometheus import Prometheus, QueryError


@dataclass(frozen=True)
class Outcome:
    """What came of one query: ``series`` of them, or the error. ``is_bad`` if that is not as it should be."""

    where: str
    series: int
    error: str
    is_bad: bool


def evaluate_dashboard(dashboard: dict[str, Any], prometheus: Prometheus, *, strict: bool) -> Iterator[Outcome]:
    """Each variable, then each query with the first value of each variable, and all of those that allow it.

    ``strict``: also panels that are empty in a healthy job without GPUs must have something to show.
    """
    values = dict(INTERVALS)
    for variable in variables_of(dashboard):
        found = prometheus.label_values(variable.label, fill(variable.selector, values))
        values[variable.name] = ".*" if variable.has_all else next(iter(found), "")
        yield Outcome(f"{dashboard['title']}: ${variable.name}", len(found), "", is_bad=not found)
    for asked in queries_of(dashboard):
        count = prometheus.count_now if asked.is_instant else prometheus.count
        where = f"{dashboard['title']}: {asked.where}"
        try:
            series = count(fill(asked.expr, values))
            yield Outcome(where, series, "", is_bad=not series and (strict or not asked.may_be_empty))
        except QueryError as error:
            yield Outcome(where, 0, str(error), is_bad=True)


def evaluate_alerts(alerts: Iterable[Alert], prometheus: Prometheus) -> Iterator[Outcome]:
    """Each alert's expression; that none fires is as it should be."""
    for alert in alerts:
        try:
            yield Outcome(alert.name, prometheus.count_now(alert.expr), "", is_bad=False)
        except QueryError as error:
            yield Outcome(alert.name, 0, str(error), is_bad=True)
