"""The JSON Schemas of what pardbg prints, made from the model. Their texts are the files ``*.schema.json`` beside this one."""

import json
from typing import Any

import msgspec

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.layout_report import LAYOUT_SCHEMA_NAME, LayoutReport
from pardbg.watchdog.model.report import SCHEMA_NAME, Report

SCHEMA_FILE = "report-1.schema.json"
LAYOUT_SCHEMA_FILE = "layout-1.schema.json"
_TITLES: dict[type[Noun], str] = {Report: SCHEMA_NAME, LayoutReport: LAYOUT_SCHEMA_NAME}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def report_schema(noun: type[Noun] = Report) -> dict[str, Any]:
    """Build the schema of a kind of report. Keys are never left out: every property is required, and none has a default."""
    schema = msgspec.json.schema(noun)
    definitions = {name: _all_required(definition) for name, definition in schema["$defs"].items()}
    return {"$schema": _DIALECT, "title": _TITLES[noun], "$ref": schema["$ref"], "$defs": definitions}


def schema_text(noun: type[Noun] = Report) -> str:
    """Write the schema as it is committed."""
    return json.dumps(report_schema(noun), indent=2) + "\n"


def _all_required(definition: dict[str, Any]) -> dict[str, Any]:
    if "properties" not in definition:
        return definition
    properties = {
        name: {key: value for key, value in rule.items() if key != "default"} for name, rule in definition["properties"].items()
    }
    return {**definition, "properties": properties, "required": list(properties)}
