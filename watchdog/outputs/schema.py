"""The JSON Schema of ``pardbg.report/1``, made from the model. ``report-1.schema.json`` beside this file is its text."""

import json
from typing import Any

import msgspec

from pardbg.watchdog.model.report import SCHEMA_NAME, Report

SCHEMA_FILE = "report-1.schema.json"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def report_schema() -> dict[str, Any]:
    """Build the schema. Keys are never left out of a report, so every property is required and none has a default."""
    schema = msgspec.json.schema(Report)
    definitions = {name: _all_required(definition) for name, definition in schema["$defs"].items()}
    return {"$schema": _DIALECT, "title": SCHEMA_NAME, "$ref": schema["$ref"], "$defs": definitions}


def schema_text() -> str:
    """Write the schema as it is committed."""
    return json.dumps(report_schema(), indent=2) + "\n"


def _all_required(definition: dict[str, Any]) -> dict[str, Any]:
    if "properties" not in definition:
        return definition
    properties = {
        name: {key: value for key, value in rule.items() if key != "default"} for name, rule in definition["properties"].items()
    }
    return {**definition, "properties": properties, "required": list(properties)}
