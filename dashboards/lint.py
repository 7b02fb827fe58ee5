"""Rules for rendered dashboards and for alerts. Pure: what is wrong, in a line each."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pardbg.dashboards.alert import Alert
from pardbg.dashboards.asked import INTERVALS, fill, queries_of, variables_of
from pardbg.dashboards.catalogue import known_names
from pardbg.dashboards.panel import ShownUnit

DATASOURCE = "${datasource}"
_METRIC = re.compile(r"\b(?:pardbg|process)_\w+|\bup\b(?=[{\s])")
_RANGE_OF_RATE = re.compile(r"\b(?:rate|irate|increase)\([^\[]*\[([^\]]*)\]")


def lint_dashboard(dashboard: dict[str, Any]) -> Iterator[str]:
    """What is wrong with one dashboard."""
    title = dashboard.get("title") or "a dashboard without a title"
    if not dashboard.get("uid"):
        yield f"{title}: no uid: each push would make another one"
    if not any(variable["type"] == "datasource" for variable in dashboard["templating"]["list"]):
        yield f"{title}: no variable for the datasource"
    numbers = [panel.get("id") for panel in dashboard["panels"]]
    if len(set(numbers)) < len(numbers):
        yield f"{title}: two panels with one id"
    problems = (problem for part in (_panels(dashboard), _sources(dashboard), _queries(dashboard)) for problem in part)
    yield from (f"{title}: {problem}" for problem in problems)


def lint_alerts(alerts: Iterable[Alert], runbooks: str) -> Iterator[str]:
    """What is wrong with the alerts; ``runbooks`` is the text that their links point into."""
    headings = {line[3:].strip().lower() for line in runbooks.splitlines() if line.startswith("## ")}
    for alert in alerts:
        if alert.name.lower() not in headings:
            yield f"{alert.name}: no heading in the runbooks"
        if not alert.summary.endswith("."):
            yield f"{alert.name}: the summary is no sentence"
        yield from (f"{alert.name}: {problem}" for problem in lint_query(alert.expr))


def lint_query(expr: str) -> Iterator[str]:
    """Names that are not in the catalogue; syntax, if promql-parser is installed."""
    unknown = sorted(set(_METRIC.findall(expr)) - known_names())
    yield from (f"no metric is called {name}" for name in unknown)
    try:
        import promql_parser  # noqa: PLC0415 - of the extra `test`
    except ImportError:
        return
    try:
        promql_parser.parse(expr)
    except ValueError as error:
        yield f"not PromQL: {error}: {expr}"


def _panels(dashboard: dict[str, Any]) -> Iterator[str]:
    units = {unit.value for unit in ShownUnit}
    for panel in dashboard["panels"]:
        name = panel.get("title") or f"panel {panel.get('id')}"
        if not panel.get("title"):
            yield f"{name}: no title"
        if panel["type"] == "row":
            continue
        if not panel.get("description"):
            yield f"{name}: no description"
        if panel["fieldConfig"]["defaults"].get("unit") not in units:
            yield f"{name}: no known unit"


def _sources(dashboard: dict[str, Any]) -> Iterator[str]:
    """Each thing that asks takes the datasource that the reader chose."""
    variables = [variable for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    targets = [target for panel in panels for target in panel["targets"]]
    for asker in (*variables, *panels, *targets, *dashboard["annotations"]["list"]):
        if asker.get("datasource", {}).get("uid") != DATASOURCE:
            yield f"{asker.get('title') or asker.get('name') or asker.get('expr')}: a datasource that is not {DATASOURCE}"


def _queries(dashboard: dict[str, Any]) -> Iterator[str]:
    values = {variable.name: "x" for variable in variables_of(dashboard)} | INTERVALS
    for asked in queries_of(dashboard):
        for interval in _RANGE_OF_RATE.findall(asked.expr):
            if interval != "$__rate_interval":
                yield f"{asked.where}: rate over {interval}, not over $__rate_interval"
        try:
            yield from (f"{asked.where}: {problem}" for problem in lint_query(fill(asked.expr, values)))
        except KeyError as error:
            yield f"{asked.where}: no variable is called {error}"
