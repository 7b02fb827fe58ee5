"""An incident as an alert: labels bounded, texts printable, the claim in them."""

import json

import pytest
from msgspec.structs import replace

from pardbg.dashboards.alerts import ALERTS
from pardbg.watchdog.outputs.as_alert import alert, alerts_of_change, labels, webhook_body
from pardbg.watchdog.outputs.as_incidents import render_incidents
from pardbg.watchdog.outputs.lasting import began_text
from pardbg.watchdog.outputs.validation import validate_report
from tests.incidents.making import ended, incident, report
from tests.outputs.samples import SAMPLES

ONE = incident(1)


def test_alert_says_who_and_where_and_what_to_do() -> None:
    made = alert(ONE)
    assert made["labels"] == {
        "alertname": "PardbgJobHung",
        "job_id": "48213",
        "incident": ONE.id,
        "host": "gpu-n01",
        "severity": "critical",
        "kind": "missing-participant",
        "cause": "checkpoint-io",
    }
    verdict = ONE.report.verdict
    assert verdict is not None
    assert made["annotations"]["summary"] == f"Job 48213 hangs: {verdict.claim}"
    description = made["annotations"]["description"]
    assert verdict.claim in description
    assert f"Try: {verdict.advice[0]}" in description
    assert f"pardbg incidents show {ONE.id}" in description
    assert made["annotations"]["runbook_url"] in {one.runbook_url for one in ALERTS}
    assert (made["startsAt"], "endsAt" in made) == (began_text(ONE), False)
    assert alert(ended(ONE))["endsAt"] == ONE.updated_at


@pytest.mark.parametrize("name", SAMPLES)
def test_labels_are_bounded_and_all_texts_printable(name: str) -> None:
    made = alert(replace(incident(1, of=name), job="j" * 5000, host="h\x1b[2J\udcff"))
    assert len(json.dumps(made)) < 8000
    assert all(0 < len(value) <= 120 for value in made["labels"].values())
    texts = [*made["labels"].values(), *made["annotations"].values()]
    assert all(line.isprintable() for text in texts for line in text.splitlines())
    for text in texts:
        text.encode()


def test_only_what_is_sure_is_critical() -> None:
    expected = {"dead_rank": "critical", "undetermined": "warning", "straggler": "warning", "healthy": "warning"}
    assert {name: labels(incident(1, of=name))["severity"] for name in expected} == expected


def test_change_of_labels_ends_the_old_alert() -> None:
    later = replace(ONE, updated_at="2026-11-30T02:00:00.000Z", report=report("desync"))
    assert alerts_of_change(None, later) == [alert(later)]
    assert alerts_of_change(ONE, replace(later, report=ONE.report)) == [alert(replace(later, report=ONE.report))]
    old, new = alerts_of_change(ONE, later)
    assert (old["labels"], old["endsAt"]) == (labels(ONE), later.updated_at)
    assert new == alert(later)


@pytest.mark.parametrize("name", SAMPLES)
def test_json_is_as_the_contract_has_it(name: str) -> None:
    one = incident(1, of=name)
    whole = json.loads("".join(render_incidents([one, ended(one)])))
    assert whole["schema"] == "pardbg.incidents/1"
    first, second = whole["incidents"]
    assert list(first) == ["id", "job", "attempt", "state", "opened_at", "updated_at", "report"]
    assert (first["state"], second["state"]) == ("open", "ended")
    validate_report(first["report"])
    assert json.loads(json.dumps(webhook_body("opened", one))) == {"event": "opened", **first}
    assert json.loads("".join(render_incidents([]))) == {"schema": "pardbg.incidents/1", "incidents": []}
