"""Checks JSON against the shipped schema. For tests: it needs jsonschema, which pardbg itself does not."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # ships no types

from pardbg.watchdog.outputs.schema import LAYOUT_SCHEMA_FILE, SCHEMA_FILE


def validate_report(report: Any) -> None:
    """Check one decoded report.

    Raises:
        jsonschema.ValidationError: it is not a ``pardbg.report/1``; the message is that of the innermost mistake.
    """
    _validate(report, SCHEMA_FILE)


def validate_layout_report(report: Any) -> None:
    """Check one decoded report on a layout.

    Raises:
        jsonschema.ValidationError: it is not a ``pardbg.layout/1``.
    """
    _validate(report, LAYOUT_SCHEMA_FILE)


def _validate(report: Any, schema_file: str) -> None:
    mistake = jsonschema.exceptions.best_match(_validator(schema_file).iter_errors(report))
    if mistake is not None:
        raise mistake


@cache
def _validator(schema_file: str) -> Any:
    text = files("pardbg.watchdog.outputs").joinpath(schema_file).read_text(encoding="utf-8")
    return jsonschema.Draft202012Validator(json.loads(text))
