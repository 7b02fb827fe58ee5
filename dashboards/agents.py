"""The dashboard of all agents: which jobs they watch, and how they are."""

from pardbg.dashboards.alerts import AGENTS
from pardbg.dashboards.incident_table import NO_INCIDENT, TO_JOB, incident_table
from pardbg.dashboards.panel import Color, Column, Dashboard, Panel, Query, Row, Shape, ShownUnit
from pardbg.dashboards.queries import MOST_SERIES, STATES, most, state_code

_OF_AGENTS = "and on (job, instance) pardbg_build_info"


def _number(title: str, description: str, expr: str, *, is_bad: bool = False, empty: str = "") -> Panel:
    return Panel(
        title=title,
        description=description,
        shape=Shape.STAT,
        queries=(Query(expr),),
        empty=empty,
        thresholds=((1, Color.BAD),) if is_bad else (),
        width=4,
        height=4,
    )


_JOBS = Row(
    "Jobs",
    (
        _number("Agents", "Agents that answer.", "count(pardbg_build_info)"),
        _number("Agents down", "Agents that do not answer.", f"count(up{{{AGENTS}}} == 0)", is_bad=True, empty="None"),
        _number("Jobs", "Jobs that are watched.", "count(count by (job_id, world) (pardbg_job_ranks))", empty="No job"),
        _number("Ranks", "Ranks that are watched.", "sum(pardbg_job_ranks)", empty="No job"),
        _number("Hangs", "Open incidents.", "count(pardbg_incident_info)", is_bad=True, empty=NO_INCIDENT),
        _number("Unsent", "Notifications that wait for their receiver.", "sum(pardbg_agent_unsent_notifications)", is_bad=True),
        incident_table(),
        Panel(
            title="Watched jobs",
            description="Every job with its state, the worst of all hosts; ranks seen, and ranks there should be.",
            shape=Shape.TABLE,
            unit=ShownUnit.TEXT,
            queries=(
                Query(state_code("job_id, world, attempt")),
                Query("sum by (job_id, world, attempt) (pardbg_job_ranks)"),
                Query("max by (job_id, world, attempt) (pardbg_job_world_size)"),
            ),
            empty="No job",
            columns=(
                Column("job_id", "job", link=TO_JOB),
                Column("attempt", "attempt", 80),
                Column("Value #A", "state", 110, names=STATES),
                Column("Value #B", "ranks", 80),
                Column("Value #C", "of", 80),
                Column("world", "world"),
            ),
            width=24,
        ),
    ),
)

_AGENTS = Row(
    "Agents",
    (
        Panel(
            title="Problems",
            description="What agents suffer from. /healthz of the agent says it in words.",
            shape=Shape.TABLE,
            queries=(Query("max by (host, problem) (pardbg_agent_problem)"),),
            unit=ShownUnit.TEXT,
            empty="None",
            columns=(Column("host", "host"), Column("problem", "problem")),
            width=8,
        ),
        Panel(
            title="Versions",
            description="Agents by their version.",
            shape=Shape.BARS,
            queries=(Query("count by (version) (pardbg_build_info)", "{{version}}"),),
            width=8,
        ),
        Panel(
            title="What agents do, an hour",
            description="Scans, looks, refusals, notifications and the like, of all agents.",
            shape=Shape.SERIES,
            queries=(Query("3600 * sum by (event) (rate(pardbg_agent_events_total[$__rate_interval]))", "{{event}}"),),
            width=8,
        ),
        Panel(
            title="Agents' processor time",
            description=f"As a share of one core, the {MOST_SERIES} highest. 1 % is what an agent may take.",
            shape=Shape.SERIES,
            queries=(Query(most(f"rate(process_cpu_seconds_total[$__rate_interval]) {_OF_AGENTS}"), "{{instance}}"),),
            unit=ShownUnit.SHARE,
            thresholds=((0.01, Color.WARNING),),
        ),
        Panel(
            title="Agents' memory",
            description=f"The {MOST_SERIES} highest.",
            shape=Shape.SERIES,
            queries=(Query(most(f"process_resident_memory_bytes {_OF_AGENTS}"), "{{instance}}"),),
            unit=ShownUnit.BYTES,
        ),
    ),
)

AGENTS_DASHBOARD = Dashboard(
    uid="pardbg-agents",
    title="pardbg: all agents",
    description="Which jobs the agents watch, what hangs, and how the agents themselves are.",
    choices=(),
    rows=(_JOBS, _AGENTS),
    links=(("One job", "pardbg-job"), ("MoE routing", "pardbg-moe")),
)
