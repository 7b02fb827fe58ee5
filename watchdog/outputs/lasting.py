"""When a hang began, and for how long it lasted. Pure."""

from datetime import datetime, timedelta, timezone

from pardbg.watchdog.model.incident import Incident, IncidentState
from pardbg.watchdog.model.moments import parse_rfc3339
from pardbg.watchdog.outputs.phrases import spell_duration

_DAY_S = 86400
_LONG_S = 100 * 3600


def began_at(incident: Incident) -> datetime:
    """Before it was found: as long before its report as the verdict says, or else when the incident was opened."""
    opened, verdict = parse_rfc3339(incident.opened_at), incident.report.verdict
    if verdict is None or verdict.since_s is None:
        return opened
    try:
        return min(opened, parse_rfc3339(incident.report.decided_at) - timedelta(seconds=max(verdict.since_s, 0.0)))
    except (ValueError, OverflowError):
        return opened


def began_text(incident: Incident) -> str:
    """RFC 3339, as the other moments of an incident."""
    return began_at(incident).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def spell_lasted(incident: Incident, now_s: float) -> str:
    """From its beginning to its end, or to now (epoch seconds): ``13 min 18 s``, ``6 d 4 h``; 12 characters at most."""
    is_open = incident.state is IncidentState.OPEN
    end = datetime.fromtimestamp(now_s, tz=timezone.utc) if is_open else parse_rfc3339(incident.updated_at)
    lasted_s = max((end - began_at(incident)).total_seconds(), 0.0)
    if lasted_s < _LONG_S:
        return spell_duration(lasted_s)
    return f"{int(lasted_s // _DAY_S)} d {int(lasted_s % _DAY_S // 3600)} h"
