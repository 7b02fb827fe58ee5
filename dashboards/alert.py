"""The form of an alert. Adding one is one entry in `alerts.py` or `moe_alerts.py`, and a heading in `runbooks.md`."""

from dataclasses import dataclass
from enum import Enum

RUNBOOKS = "https://github.com/pardbg/pardbg/blob/main/dashboards/runbooks.md"


class Severity(str, Enum):
    """Who is told: ``critical`` wakes somebody, ``warning`` waits for the morning."""

    CRITICAL = "critical"
    WARNING = "warning"


@dataclass(frozen=True)
class Alert:
    """One alert. ``hold`` is for how long ``expr`` must hold first, in Prometheus's words; empty: fires at once."""

    name: str
    expr: str
    severity: Severity
    summary: str
    description: str
    hold: str = ""

    @property
    def runbook_url(self) -> str:
        """What it means and what to do."""
        return f"{RUNBOOKS}#{self.name.lower()}"
