"""Incidents as text for a terminal: a list of them, and what became of one. Pure."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import zip_longest

from pardbg.watchdog.model.incident import Incident, IncidentState
from pardbg.watchdog.model.text import printable_text
from pardbg.watchdog.outputs.phrases import name_subjects, spell_duration
from pardbg.watchdog.outputs.wrapping import hang, wrap

_WIDTHS = (20, 9, 9, 12)
_TITLES = ("INCIDENT", "STATE", "LASTED", "JOB", "WHAT")
_GAP = "  "
_SUBJECTS_SHOWN = 3
_FATE = {
    IncidentState.OPEN: "it lasts, as far as is known",
    IncidentState.RECOVERED: "the job went on by itself",
    IncidentState.ENDED: "the job has ended",
}


def list_incidents(incidents: Iterable[Incident], width: int = 80) -> Iterator[str]:
    """Lines of a table, the oldest first; nothing where there is none."""
    for index, incident in enumerate(incidents):
        if index == 0:
            yield from _row(_TITLES, width)
        yield from _row((incident.id, incident.state.value, _lasted(incident), _job(incident), _what(incident)), width)


def describe_incident(incident: Incident, evidence: str | None, width: int = 80) -> str:
    """What became of it: the lines above its report. ``evidence``: the folder, None if it is gone."""
    facts = {
        "job": _job(incident),
        "state": f"{incident.state.value}: {_FATE[incident.state]}",
        "opened": f"{incident.opened_at}, by the agent on {printable_text(incident.host)}",
        "updated" if incident.state is IncidentState.OPEN else "closed": f"{incident.updated_at}, after {_lasted(incident)}",
        "evidence": f"{evidence}" if evidence else "none is kept",
    }
    lines = [f"INCIDENT{_GAP}{incident.id}"]
    for label, value in facts.items():
        lines += [f"{_GAP}{label:8}{_GAP}{value}"] if label == "evidence" else hang(f"{_GAP}{label:8}{_GAP}", value, width)
    return "\n".join(lines) + "\n"


def _row(cells: tuple[str, str, str, str, str], width: int) -> Iterator[str]:
    rest = max(width - sum(_WIDTHS) - len(_GAP) * len(_WIDTHS), 16)
    columns = [_lines(cell, room) for cell, room in zip(cells, (*_WIDTHS, rest), strict=True)]
    for parts in zip_longest(*columns, fillvalue=""):
        yield _GAP.join(f"{part:{room}}" for part, room in zip(parts, (*_WIDTHS, rest), strict=True)).rstrip()


def _lines(cell: str, room: int) -> list[str]:
    """Wrapped; in a column even a long word must break."""
    return [line[start : start + room] for line in wrap(cell, room) for start in range(0, max(len(line), 1), room)]


def _lasted(incident: Incident) -> str:
    opened, updated = (datetime.fromisoformat(at.replace("Z", "+00:00")) for at in (incident.opened_at, incident.updated_at))
    return spell_duration(max((updated - opened).total_seconds(), 0.0))


def _job(incident: Incident) -> str:
    attempt = "" if incident.attempt is None else f" attempt {incident.attempt}"
    return f"{printable_text(incident.job)}{attempt}"


def _what(incident: Incident) -> str:
    verdict = incident.report.verdict
    if verdict is None:
        return incident.report.status.value
    blamed = printable_text(name_subjects(verdict.culprits or verdict.candidates, _SUBJECTS_SHOWN))
    words = f"{verdict.kind.value}{f' ({verdict.cause.value})' if verdict.cause else ''}"
    return f"{words}: {blamed}" if blamed else words
