"""Incidents as JSON: what `pardbg incidents` prints, and what a webhook gets. ASCII only, as reports."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from pardbg.watchdog.model.incident import Incident

SCHEMA_NAME = "pardbg.incidents/1"
_KEYS = ("id", "job", "attempt", "state", "opened_at", "updated_at", "report")
"""What the contract names; the rest is between agents."""


def incident_object(incident: Incident) -> dict[str, Any]:
    """One incident with its whole report, as the contract has it."""
    whole = msgspec.to_builtins(incident)
    return {key: whole[key] for key in _KEYS}


def render_incident(incident: Incident) -> str:
    """One incident, readable by people and by ``jq``."""
    return json.dumps(incident_object(incident), indent=2, allow_nan=False) + "\n"


def render_incidents(incidents: Iterable[Incident]) -> Iterator[str]:
    """All incidents as one object, in pieces, so that only one of them is in memory."""
    yield f'{{"schema": "{SCHEMA_NAME}", "incidents": ['
    for index, incident in enumerate(incidents):
        yield ",\n" if index else "\n"
        yield json.dumps(incident_object(incident), allow_nan=False)
    yield "\n]}\n"
