"""The ranks of a job: who is silent, who is behind, how fast they are, what they do."""

from pardbg.dashboards.panel import Color, Panel, Query, Row, Shape, ShownUnit
from pardbg.dashboards.queries import JOB, MOST_SERIES, most

NO_PROBE = "No rank has a probe: start the job with `pardbg run`"
_STEPS = f"max by (world, rank) (pardbg_rank_steps_total{{{JOB}}})"
_RATE = f"max by (world, rank) (rate(pardbg_rank_steps_total{{{JOB}}}[$__rate_interval]))"
_QUIET = f"max by (world, rank) (pardbg_rank_quiet_seconds{{{JOB}}})"
_LIMIT = f"max by (world, rank) (pardbg_rank_quiet_limit_seconds{{{JOB}}})"

RANKS = Row(
    "Ranks",
    (
        Panel(
            title="Silence, as a share of what is allowed",
            description=f"The {MOST_SERIES} most silent ranks. At 100 % the job is suspect, and a "
            "scan looks at it. In a hang those that wait are as silent as the one they wait for: the incident says who is who.",
            shape=Shape.SERIES,
            queries=(Query(most(f"{_QUIET} / {_LIMIT}"), "rank {{rank}}"),),
            unit=ShownUnit.SHARE,
            thresholds=((1, Color.BAD),),
        ),
        Panel(
            title="Silence, and its limits",
            description="For how long ranks have shown no sign of life, the most silent of them, and for how long they "
            "may: the limit follows each rank's own longest pauses.",
            shape=Shape.SERIES,
            queries=(
                Query(most(_QUIET), "rank {{rank}}"),
                Query(f"min({_LIMIT})", "lowest limit"),
                Query(f"max({_LIMIT})", "highest limit"),
            ),
            unit=ShownUnit.SECONDS,
        ),
        Panel(
            title="Steps a second",
            description="The slowest, the median and the fastest rank. In lockstep all are equal.",
            shape=Shape.SERIES,
            queries=(
                Query(f"max({_RATE})", "fastest"),
                Query(f"quantile(0.5, {_RATE})", "median"),
                Query(f"min({_RATE})", "slowest"),
            ),
            empty=NO_PROBE,
        ),
        Panel(
            title="Steps behind the first rank",
            description=f"The {MOST_SERIES} ranks that have finished the fewest steps. One step is normal.",
            shape=Shape.SERIES,
            queries=(Query(most(f"scalar(max({_STEPS})) - {_STEPS}"), "rank {{rank}}"),),
            empty=NO_PROBE,
        ),
        Panel(
            title="Slowest ranks",
            description=f"The {MOST_SERIES} ranks whose last steps took longest, over the last minutes.",
            shape=Shape.BARS,
            queries=(
                Query(
                    most(f"max by (world, rank, host) (avg_over_time(pardbg_rank_step_seconds{{{JOB}}}[$__rate_interval]))"),
                    "rank {{rank}} on {{host}}",
                ),
            ),
            unit=ShownUnit.SECONDS,
            empty=NO_PROBE,
        ),
        Panel(
            title="Phases",
            description="How many ranks train, save a checkpoint, compile or evaluate.",
            shape=Shape.SERIES,
            queries=(Query(f"count by (phase) (pardbg_rank_phase{{{JOB}}})", "{{phase}}"),),
            empty=NO_PROBE,
            is_stacked=True,
        ),
        Panel(
            title="Ranks that cannot be seen, by host",
            description="Ranks of which the agent sees no sign of life. `pardbg doctor` on the host says why.",
            shape=Shape.SERIES,
            queries=(Query(f"count by (host) (pardbg_rank_visible{{{JOB}}} == 0)", "{{host}}"),),
            empty="All are seen",
            width=24,
            height=5,
        ),
    ),
)
