"""An incident as Alertmanager (API v2) and as a webhook wants it. Pure; texts are printable and bounded."""

from typing import Any

from pardbg.watchdog.model.incident import Incident, IncidentState
from pardbg.watchdog.model.names import Kind, Status
from pardbg.watchdog.model.text import printable_text
from pardbg.watchdog.outputs.as_incidents import incident_object
from pardbg.watchdog.outputs.lasting import began_text
from pardbg.watchdog.outputs.phrases import count_of, name_subjects
from pardbg.watchdog.outputs.sections.headline import claim

ALERT_NAME = "PardbgJobHung"
RUNBOOK_URL = "https://github.com/pardbg/pardbg/blob/main/dashboards/runbooks.md#pardbgjobhung"
_LONGEST_LABEL, _LONGEST_TEXT = 120, 2000
_SUBJECTS_SHOWN = 8
_SURE = frozenset({Status.HUNG, Status.FAILED})


def webhook_body(event: str, incident: Incident) -> dict[str, Any]:
    """The incident as the contract has it, and what happened: opened, updated, recovered or ended."""
    return {"event": event, **incident_object(incident)}


def alert(incident: Incident, runbook_url: str = RUNBOOK_URL) -> dict[str, Any]:
    """One alert. While the incident is open it has no end: Alertmanager sets one, and it is sent again before that comes."""
    ends = {} if incident.state is IncidentState.OPEN else {"endsAt": incident.updated_at}
    return {
        "labels": labels(incident),
        "annotations": _annotations(incident, runbook_url),
        "startsAt": began_text(incident),
        **ends,
    }


def alerts_of_change(before: Incident | None, incident: Incident, runbook_url: str = RUNBOOK_URL) -> list[dict[str, Any]]:
    """What to send when an incident is new or has changed: labels identify an alert, so one with other labels ends."""
    now = alert(incident, runbook_url)
    if before is None or labels(before) == now["labels"]:
        return [now]
    return [{**alert(before, runbook_url), "endsAt": incident.updated_at}, now]


def labels(incident: Incident) -> dict[str, str]:
    """What the alert is routed and grouped by. ``host`` is the node whose agent keeps the incident."""
    verdict = incident.report.verdict
    values = {
        "alertname": ALERT_NAME,
        "job_id": incident.job,
        "incident": incident.id,
        "host": incident.host,
        "severity": _severity(incident),
        "kind": verdict.kind.value if verdict else "",
        "cause": verdict.cause.value if verdict and verdict.cause else "",
    }
    return {name: _short(value, _LONGEST_LABEL) for name, value in values.items() if value}


def _severity(incident: Incident) -> str:
    verdict = incident.report.verdict
    is_sure = incident.report.status in _SURE and verdict is not None and verdict.kind is not Kind.INSUFFICIENT_EVIDENCE
    return "critical" if is_sure else "warning"


def _annotations(incident: Incident, runbook_url: str) -> dict[str, str]:
    said = claim(incident.report)
    texts = {
        "summary": f"Job {incident.job} hangs: {said}",
        "description": "\n".join(_description(incident, said)),
        "runbook_url": runbook_url,
    }
    return {name: text if name == "runbook_url" else _short(text, _LONGEST_TEXT) for name, text in texts.items()}


def _description(incident: Incident, said: str) -> list[str]:
    verdict = incident.report.verdict
    lines = [said]
    if verdict is not None:
        lines.append(f"Verdict: {verdict.kind.value}, {verdict.cause.value if verdict.cause else 'cause not established'},"
                     f" {verdict.confidence.value}.")  # fmt: skip
        lines += [f"Culprits: {name_subjects(verdict.culprits, _SUBJECTS_SHOWN)}."] if verdict.culprits else []
        lines += [f"Waiting: {count_of(len(verdict.victims), 'rank')}."] if verdict.victims else []
        lines += [f"Try: {text}" for text in verdict.advice[:3]]
    lines += [f"Note: {note}" for note in incident.report.notes[-2:]]
    lines.append(f"Whole report, on {incident.host}: pardbg incidents show {incident.id}")
    return lines


def _short(text: str, longest: int) -> str:
    shown = "\n".join(map(printable_text, text.splitlines()))
    return shown if len(shown) <= longest else f"{shown[: longest - 3]}..."
