"""Incidents as text for a terminal: a list of them, and what became of one. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from pardbg.watchdog.model.incident import Incident, IncidentState
from pardbg.watchdog.model.text import printable_text
from pardbg.watchdog.outputs.lasting import began_text, spell_lasted
from pardbg.watchdog.outputs.phrases import name_subjects
from pardbg.watchdog.outputs.wrapping import hang, wrap

_WIDTHS = (20, 9, 12, 12)
_TITLES = ("INCIDENT", "STATE", "LASTED", "JOB", "WHAT")
_GAP = "  "
_SUBJECTS_SHOWN = 3
_PATHS = frozenset({"evidence", "newest"})
_FATE = {
    IncidentState.OPEN: "it lasts, as far as is known",
    IncidentState.RECOVERED: "the job went on by itself",
    IncidentState.ENDED: "the job has ended",
}


def list_incidents(incidents: Iterable[Incident], now_s: float, width: int = 80) -> Iterator[str]:
    """Lines of a table, the oldest first; nothing where there is none. An open one lasts until now (epoch seconds)."""
    for index, incident in enumerate(incidents):
        if index == 0:
            yield from _row(_TITLES, width)
        lasted = spell_lasted(incident, now_s)
        yield from _row((incident.id, incident.state.value, lasted, _job(incident), _what(incident)), width)


def describe_incident(incident: Incident, evidence: Sequence[str], now_s: float, width: int = 80) -> str:
    """What became of it: the lines above its report. ``evidence``: the folders, of the first scan and of the newest one."""
    facts = {
        "job": _job(incident),
        "state": f"{incident.state.value}: {_FATE[incident.state]}",
        "began": f"{began_text(incident)}; it {_lasts(incident, now_s)}",
        "opened": f"{incident.opened_at}, by the agent on {printable_text(incident.host)}",
        "updated" if incident.state is IncidentState.OPEN else "closed": incident.updated_at,
        "evidence": evidence[0] if evidence else "none is kept",
    }
    if len(evidence) > 1:
        facts["newest"] = evidence[1]
    lines = [f"INCIDENT{_GAP}{incident.id}"]
    for label, value in facts.items():
        lines += [f"{_GAP}{label:8}{_GAP}{value}"] if label in _PATHS else hang(f"{_GAP}{label:8}{_GAP}", value, width)
    return "\n".join(lines) + "\n"


def _row(cells: tuple[str, str, str, str, str], width: int) -> Iterator[str]:
    rest = max(width - sum(_WIDTHS) - len(_GAP) * len(_WIDTHS), 16)
    columns = [_lines(cell, room) for cell, room in zip(cells, (*_WIDTHS, rest), strict=True)]
    for parts in zip_longest(*columns, fillvalue=""):
        yield _GAP.join(f"{part:{room}}" for part, room in zip(parts, (*_WIDTHS, rest), strict=True)).rstrip()


def _lines(cell: str, room: int) -> list[str]:
    """Wrapped; in a column even a long word must break."""
    return [line[start : start + room] for line in wrap(cell, room) for start in range(0, max(len(line), 1), room)]


def _lasts(incident: Incident, now_s: float) -> str:
    lasted = spell_lasted(incident, now_s)
    return f"lasts for {lasted} now" if incident.state is IncidentState.OPEN else f"lasted {lasted}"


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
