"""Earlier incidents of the same hosts and GPUs, told with a verdict. Pure."""

from collections.abc import Sequence

from msgspec.structs import replace

from pardbg.watchdog.incidents.rows import culprit_devices, culprit_hosts, culprit_names, device_name, host_name
from pardbg.watchdog.model.incident import Incident
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.outputs.phrases import count_of, list_names

_SHOWN = 3


def with_history(report: Report, earlier: Sequence[Incident]) -> Report:
    """The report with one more note, if the verdict's hosts or GPUs held culprits of earlier incidents (the newest first)."""
    named = [(f"on host {host}", host_name(host)) for host in culprit_hosts(report)]
    named += [(f"at GPU {uuid}", device_name(uuid)) for uuid in culprit_devices(report)]
    parts = []
    for words, name in named:
        theirs = [incident for incident in earlier if name in culprit_names(incident.report)]
        if theirs:
            parts.append(
                f"{words} in {count_of(len(theirs), 'earlier incident')}: {list_names(list(map(_name, theirs)), _SHOWN)}"
            )
    if not parts:
        return report
    return replace(report, notes=(*report.notes, f"a culprit was {'; '.join(parts)}"))


def _name(incident: Incident) -> str:
    verdict = incident.report.verdict
    why = (verdict.cause or verdict.kind).value if verdict else incident.report.status.value
    return f"{incident.id} ({why})"
