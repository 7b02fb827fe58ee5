"""The table of open incidents, of one job or of all."""

from pardbg.dashboards.panel import Column, Panel, Query, Shape, ShownUnit

NO_INCIDENT = "No open incident"
_LABELS = "job_id, world, incident, host, kind, cause, culprit, claim"
TO_JOB = "/d/pardbg-job?var-job_id=${__value.text}&${datasource:queryparam}"


def incident_table(selector: str = "") -> Panel:
    """Since when, who, what and the claim. The value is the moment it was opened, in milliseconds."""
    opened = f"1000 * max by (job_id, world, incident, host) (pardbg_incident_opened_timestamp_seconds{{{selector}}})"
    info = f"max by ({_LABELS}) (pardbg_incident_info{{{selector}}})"
    return Panel(
        title="Open incidents",
        description="Hangs that last. `pardbg incidents show ID` on the host has the whole report.",
        shape=Shape.TABLE,
        queries=(Query(f"{info} * on (job_id, world, incident, host) group_left () ({opened})"),),
        unit=ShownUnit.TEXT,
        empty=NO_INCIDENT,
        columns=(
            Column("Value", "began", 130, ShownUnit.FROM_NOW),
            *(() if selector else (Column("job_id", "job", 130, link=TO_JOB),)),
            Column("culprit", "culprit", 110),
            Column("kind", "kind", 160),
            Column("cause", "cause", 130),
            Column("claim", "claim"),
            Column("incident", "incident", 190),
            Column("host", "host", 110),
        ),
        width=24,
        height=5,
    )
