"""A dashboard in Grafana's JSON (schema 39: Grafana 10.4 and newer, which bring older ones up to date by themselves)."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

from pardbg.dashboards.panel import WIDTH, Choice, Color, Dashboard, Named, Panel, Query, Shape

SCHEMA_VERSION = 39
Json = dict[str, Any]
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_LEGEND = {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": []}
_TOOLTIP = {"mode": "multi", "sort": "desc"}
_MOST_CELLS = 120
"""In a line of `Shape.HEAT`: Grafana refuses to draw more than fit."""
_REDUCED = {"calcs": ["lastNotNull"], "fields": "", "values": False}
_STAT_LOOK = {
    "colorMode": "value",
    "graphMode": "none",
    "textMode": "value",
    "justifyMode": "auto",
    "orientation": "auto",
    "percentChangeColorMode": "standard",
    "showPercentChange": False,
    "wideLayout": True,
}
_BARS_LOOK = {
    "orientation": "horizontal",
    "displayMode": "basic",
    "showUnfilled": True,
    "valueMode": "color",
    "namePlacement": "auto",
    "sizing": "auto",
    "minVizWidth": 8,
    "minVizHeight": 16,
    "maxVizHeight": 300,
}


def render_dashboard(dashboard: Dashboard) -> str:
    """The file that Grafana imports."""
    return json.dumps(_dashboard(dashboard), indent=2, ensure_ascii=False) + "\n"


def _dashboard(dashboard: Dashboard) -> Json:
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.description,
        "tags": ["pardbg"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "timezone": "browser",
        "time": {"from": "now-1h", "to": "now"},
        "links": [_link(title, uid) for title, uid in dashboard.links],
        "annotations": {"list": [_events(dashboard.events)] if dashboard.events else []},
        "templating": {"list": [_source_choice(), *map(_choice, dashboard.choices)]},
        "panels": list(_panels(dashboard)),
    }


def _link(title: str, uid: str) -> Json:
    look = {"icon": "dashboard", "tooltip": "", "tags": [], "asDropdown": False, "targetBlank": False}
    return {"title": title, "type": "link", "url": f"/d/{uid}", "keepTime": True, "includeVars": False, **look}


def _events(query: Query) -> Json:
    return {
        "name": "Incidents",
        "datasource": _SOURCE,
        "enable": True,
        "iconColor": Color.BAD.value,
        "expr": query.expr,
        "titleFormat": query.legend,
        "textFormat": "{{claim}}",
        "step": "15s",
    }


def _source_choice() -> Json:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0}


def _choice(choice: Choice) -> Json:
    all_of_them = {"current": {"text": "All", "value": "$__all"}, "allValue": ".*"} if choice.has_all else {}
    return {
        "name": choice.name,
        "label": choice.label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": choice.query, "refId": choice.name},
        "definition": choice.query,
        "refresh": 2,
        "sort": 3,
        "multi": choice.has_all,
        "includeAll": choice.has_all,
        "hide": 0,
        **all_of_them,
    }


def _panels(dashboard: Dashboard) -> Iterator[Json]:
    """From left to right, then below; each row of panels is as high as its highest."""
    numbers, y = count(1), 0
    for row in dashboard.rows:
        yield _heading(row.title, next(numbers), y)
        x, y, height = 0, y + 1, 0
        for panel in row.panels:
            if x + panel.width > WIDTH:
                x, y, height = 0, y + height, 0
            yield {"id": next(numbers), "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height}, **_panel(panel)}
            x, height = x + panel.width, max(height, panel.height)
        y += height


def _heading(title: str, number: int, y: int) -> Json:
    place = {"x": 0, "y": y, "w": WIDTH, "h": 1}
    return {"id": number, "gridPos": place, "type": Shape.ROW.value, "title": title, "collapsed": False, "panels": []}


def _panel(panel: Panel) -> Json:
    return {
        "type": panel.shape.value,
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "targets": [_target(panel, query, chr(ord("A") + number)) for number, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": list(_overrides(panel))},
        "options": _options(panel),
        **({"maxDataPoints": _MOST_CELLS} if panel.shape is Shape.HEAT else {}),
        **({"transformations": list(_transformations(panel))} if panel.columns else {}),
    }


def _target(panel: Panel, query: Query, letter: str) -> Json:
    is_table = panel.shape is Shape.TABLE
    return {
        "refId": letter,
        "datasource": _SOURCE,
        "expr": query.expr,
        "legendFormat": query.legend or "__auto",
        "instant": panel.is_instant,
        "range": not panel.is_instant,
        "format": "table" if is_table else "time_series",
    }


def _defaults(panel: Panel) -> Json:
    base = Color.INFO if panel.shape is Shape.BARS else Color.PLAIN
    steps: list[Json] = [{"color": base.value, "value": None}]
    steps += [{"color": color.value, "value": value} for value, color in panel.thresholds]
    floor = 0 if panel.shape in {Shape.SERIES, Shape.BARS} else None
    known = {"noValue": panel.empty or None, "max": panel.top, "min": floor if panel.bottom is None else panel.bottom}
    return {
        "unit": panel.unit.value,
        "color": {"mode": _coloring(panel)},
        "thresholds": {"mode": "absolute", "steps": steps},
        "mappings": _mappings(panel.names),
        "custom": _drawing(panel),
        **{name: value for name, value in known.items() if value is not None},
    }


def _coloring(panel: Panel) -> str:
    if panel.shape is Shape.HEAT:
        return "continuous-RdYlGr" if panel.is_low_bad else "continuous-GrYlRd"
    return "palette-classic" if panel.shape is Shape.SERIES else "thresholds"


def _mappings(names: tuple[Named, ...]) -> list[Json]:
    words = {
        str(named.value): {"text": named.text, "color": named.color.value, "index": number}
        for number, named in enumerate(names)
    }
    return [{"type": "value", "options": words}] if words else []


def _drawing(panel: Panel) -> Json:
    if panel.shape is Shape.SERIES:
        return {
            "lineWidth": 1,
            "fillOpacity": 60 if panel.is_stacked else 0,
            "showPoints": "never",
            "stacking": {"mode": "normal" if panel.is_stacked else "none"},
            "thresholdsStyle": {"mode": "dashed" if panel.thresholds else "off"},
        }
    if panel.shape in {Shape.STATES, Shape.HEAT}:
        return {"lineWidth": 0, "fillOpacity": 80}
    return (
        {"align": "auto", "inspect": False, "cellOptions": {"type": "auto"}, "wrapText": True}
        if panel.shape is Shape.TABLE
        else {}
    )


def _options(panel: Panel) -> Json:
    options: dict[Shape, Json] = {
        Shape.SERIES: {"legend": _LEGEND, "tooltip": _TOOLTIP},
        Shape.STATES: {"legend": _LEGEND, "tooltip": _TOOLTIP, "showValue": "auto", "mergeValues": True, "rowHeight": 0.9},
        Shape.HEAT: {
            "legend": {**_LEGEND, "showLegend": False},
            "tooltip": {"mode": "single", "sort": "none"},
            "showValue": "never",
            "rowHeight": 1,
            "colWidth": 1,
        },
        Shape.STAT: {"reduceOptions": _REDUCED, **_STAT_LOOK},
        Shape.BARS: {"reduceOptions": _REDUCED, "legend": {**_LEGEND, "showLegend": False}, **_BARS_LOOK},
        Shape.TABLE: {"showHeader": True, "cellHeight": "sm", "frameIndex": 0, **_sorting(panel)},
    }
    return options[panel.shape]


def _sorting(panel: Panel) -> Json:
    return {"sortBy": [{"displayName": panel.worst_first, "desc": True}]} if panel.worst_first else {}


def _overrides(panel: Panel) -> Iterator[Json]:
    for column in panel.columns:
        properties = [
            *([{"id": "unit", "value": column.unit.value}] if column.unit else []),
            *([{"id": "custom.width", "value": column.width}] if column.width else []),
            *([{"id": "links", "value": [{"title": "Show", "url": column.link}]}] if column.link else []),
            *([{"id": "mappings", "value": _mappings(column.names)}] if column.names else []),
            *([{"id": "custom.cellOptions", "value": {"type": "color-text"}}] if column.names else []),
        ]
        if properties:
            yield {"matcher": {"id": "byName", "options": column.title}, "properties": properties}


def _transformations(panel: Panel) -> Iterator[Json]:
    """A table of several queries is joined by the labels they share, then cut down to its columns."""
    if len(panel.queries) > 1:
        yield {"id": "merge", "options": {}}
    fields = [column.field for column in panel.columns]
    yield {"id": "filterFieldsByName", "options": {"include": {"names": fields}}}
    yield {
        "id": "organize",
        "options": {
            "indexByName": {field: number for number, field in enumerate(fields)},
            "renameByName": {column.field: column.title for column in panel.columns},
        },
    }
