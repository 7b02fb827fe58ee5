"""The dashboard of one job: its state, its ranks, what holds it up, its GPUs."""

from pardbg.dashboards.incident_table import NO_INCIDENT, incident_table
from pardbg.dashboards.job_gpus import GPUS
from pardbg.dashboards.job_ranks import NO_PROBE, RANKS
from pardbg.dashboards.panel import Choice, Color, Dashboard, Panel, Query, Row, Shape, ShownUnit
from pardbg.dashboards.queries import JOB, STATES, state_code

_OVERVIEW = Row(
    "Job",
    (
        Panel(
            title="State",
            description="The worst that any host's watchdog makes of the job now.",
            shape=Shape.STAT,
            queries=(Query(f"max({state_code('job_id', JOB)})"),),
            names=STATES,
            width=4,
            height=4,
        ),
        Panel(
            title="Ranks missing",
            description="Ranks that the job should have and no agent sees.",
            shape=Shape.STAT,
            queries=(
                Query(
                    f"sum(max by (world) (pardbg_job_world_size{{{JOB}}})) - sum(sum by (world) (pardbg_job_ranks{{{JOB}}}))"
                ),
            ),
            thresholds=((1, Color.WARNING),),
            width=4,
            height=4,
        ),
        Panel(
            title="Ranks seen",
            description="Ranks that agents see.",
            shape=Shape.STAT,
            queries=(Query(f"sum(pardbg_job_ranks{{{JOB}}})"),),
            width=4,
            height=4,
        ),
        Panel(
            title="Longest silence",
            description="For how long the most silent rank has shown no sign of life.",
            shape=Shape.STAT,
            queries=(Query(f"max(pardbg_rank_quiet_seconds{{{JOB}}})"),),
            unit=ShownUnit.SECONDS,
            width=4,
            height=4,
        ),
        Panel(
            title="Last step",
            description="How long the last step took, the median of all ranks.",
            shape=Shape.STAT,
            queries=(Query(f"quantile(0.5, pardbg_rank_step_seconds{{{JOB}}})"),),
            unit=ShownUnit.SECONDS,
            empty=NO_PROBE,
            width=4,
            height=4,
        ),
        Panel(
            title="Open incidents, count",
            description="Hangs of this job that last.",
            shape=Shape.STAT,
            queries=(Query(f"count(pardbg_incident_info{{{JOB}}})"),),
            empty=NO_INCIDENT,
            thresholds=((1, Color.BAD),),
            width=4,
            height=4,
        ),
        incident_table(JOB),
        Panel(
            title="State over time",
            description="What the watchdog made of the job: suspect while ranks are silent for too long, hung once a scan has "
            "found a fault. One line for each world and attempt.",
            shape=Shape.STATES,
            queries=(Query(state_code("world", JOB), "{{world}}"),),
            names=STATES,
            width=24,
            height=4,
        ),
    ),
)

JOB_DASHBOARD = Dashboard(
    uid="pardbg-job",
    title="pardbg: one job",
    description="Whether a job lives, which rank holds it up, and what its GPUs do.",
    choices=(
        Choice("job_id", "Job", "label_values(pardbg_job_state, job_id)"),
        Choice("world", "World", 'label_values(pardbg_job_state{job_id="$job_id"}, world)', has_all=True),
    ),
    rows=(_OVERVIEW, RANKS, GPUS),
    events=Query(f"max by (incident, kind, culprit, claim) (pardbg_incident_info{{{JOB}}})", "{{kind}} {{culprit}}"),
    links=(("MoE routing", "pardbg-moe"), ("All agents", "pardbg-agents")),
)
