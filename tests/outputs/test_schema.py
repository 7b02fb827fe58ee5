"""The shipped schema is the model's, and every report obeys it."""

import copy
import json
from importlib.resources import files

import jsonschema  # type: ignore[import-untyped]  # ships no types
import msgspec
import pytest
from tests.outputs.samples import SAMPLES

from pardbg.watchdog.model.report import Report
from pardbg.watchdog.outputs.as_json import render_json
from pardbg.watchdog.outputs.schema import SCHEMA_FILE, schema_text
from pardbg.watchdog.outputs.validation import validate_report

HOW_TO_UPDATE = (
    "python -c 'from pardbg.watchdog.outputs.schema import schema_text; print(schema_text(), end=\"\")' "
    f"> watchdog/outputs/{SCHEMA_FILE}"
)


def test_committed_schema_is_the_models() -> None:
    committed = files("pardbg.watchdog.outputs").joinpath(SCHEMA_FILE).read_text(encoding="utf-8")
    assert json.loads(committed) == json.loads(schema_text()), HOW_TO_UPDATE


@pytest.mark.parametrize("report", SAMPLES.values(), ids=SAMPLES)
def test_report_obeys_the_schema_and_reads_back(report: Report) -> None:
    decoded = json.loads(render_json(report))
    validate_report(decoded)
    assert msgspec.convert(decoded, Report) == report


@pytest.mark.parametrize("path", [("took_s",), ("verdict", "edit"), ("verdict", "culprits", 0, "device"), ("job", "world")])
def test_report_without_a_key_is_refused(path: tuple[str | int, ...]) -> None:
    decoded = copy.deepcopy(json.loads(render_json(SAMPLES["checkpoint_io"])))
    owner = decoded
    for step in path[:-1]:
        owner = owner[step]
    del owner[path[-1]]
    with pytest.raises(jsonschema.ValidationError, match="is a required property"):
        validate_report(decoded)


def test_unknown_key_is_allowed() -> None:
    validate_report({**json.loads(render_json(SAMPLES["healthy"])), "from_the_future": 1})


@pytest.mark.parametrize("report", SAMPLES.values(), ids=SAMPLES)
def test_json_is_ascii(report: Report) -> None:
    assert render_json(report).isascii()
