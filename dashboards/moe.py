"""The dashboard of MoE routing of one job: which layers are ill, what they drop, how even their load is, what routers do."""

from pardbg.dashboards.moe_balance import BALANCE, EXPERT_PARALLEL, ROUTERS
from pardbg.dashboards.moe_queries import NO_LAYER, heat_of, of
from pardbg.dashboards.panel import Choice, Color, Column, Dashboard, Panel, Query, Row, Shape, ShownUnit
from pardbg.dashboards.queries import JOB, MOST_SERIES, most
from pardbg.watchdog.model.names import ROUTING_KINDS

_DIFFERENCE = f"pardbg_moe_drop_ratio{{{JOB}}} - pardbg_moe_predicted_drop_ratio{{{JOB}}}"
WELL = "All layers are well"
_ILL = f"max by (world, layer, kind) (pardbg_moe_illness{{{JOB}}}) == 1"
_TABLE = "max by (world, layer)"


def _number(
    title: str, description: str, expr: str, unit: ShownUnit = ShownUnit.COUNT, *, bad_from: float | None = None
) -> Panel:
    return Panel(
        title=title,
        description=description,
        shape=Shape.STAT,
        queries=(Query(expr),),
        unit=unit,
        empty=NO_LAYER,
        thresholds=() if bad_from is None else ((bad_from, Color.WARNING),),
        width=4,
        height=4,
    )


_OVERVIEW = Row(
    "Routing",
    (
        _number(
            "Layers that are ill",
            "MoE layers with a drop spike, a collapsing router, dead experts, a hot EP rank or a router without gradient.",
            f"count(count by (world, layer) ({_ILL})) or 0 * count({of('step')})",
            bad_from=1,
        ),
        _number("MoE layers", "Layers whose routing is counted.", f"count({of('step')})"),
        _number("Step", "The newest step whose routing is known.", f"max({of('step')})", ShownUnit.TEXT),
        _number(
            "Highest drop rate", "Of any layer, in its last step.", f"max({of('drop_ratio')})", ShownUnit.SHARE, bad_from=0.05
        ),
        _number("Highest load / mean", "Of any expert in any layer, in its last step.", f"max({of('load_max_ratio')})"),
        _number("Contradictions", "In what was counted, of all layers together.", f"sum({of('doubts')})", bad_from=1),
        Panel(
            title="What is ill",
            description="Layers with what they have, and the first step that showed it: the layer that began comes first.",
            shape=Shape.TABLE,
            unit=ShownUnit.TEXT,
            queries=(Query(f"sort(max by (world, layer, kind) (pardbg_moe_illness_since_step{{{JOB}}}))"),),
            empty=WELL,
            columns=(
                Column("layer", "layer", 80),
                Column("kind", "illness", 200),
                Column("Value", "since step", 120),
                Column("world", "world"),
            ),
            width=12,
            height=8,
        ),
        Panel(
            title="Ill layers over time",
            description="How many layers have each illness.",
            shape=Shape.SERIES,
            queries=tuple(
                Query(
                    f'count(max by (world, layer) (pardbg_moe_illness{{{JOB}, kind="{kind.value}"}}) == 1)'
                    f' or 0 * count(pardbg_moe_illness{{{JOB}, kind="{kind.value}"}})',
                    kind.value,
                )
                for kind in ROUTING_KINDS
            ),
            empty=NO_LAYER,
        ),
        Panel(
            title="Layers, the busiest expert first",
            description="Figures of each layer's last step. Load is that of the busiest expert / the mean; experts without "
            "a token are normal where a step has few tokens an expert.",
            shape=Shape.TABLE,
            queries=(
                Query(of("load_max_ratio")),
                Query(of("drop_ratio")),
                Query(of("predicted_drop_ratio")),
                Query(of("load_entropy_ratio", "min")),
                Query(of("dead_expert_ratio")),
                Query(of("ep_load_max_ratio")),
                Query(of("step")),
                Query(f"{_TABLE[:-1]}, name) (pardbg_moe_layer_info{{{JOB}}})"),
            ),
            empty=NO_LAYER,
            columns=(
                Column("layer", "layer", 80),
                Column("Value #A", "load / mean", 110),
                Column("Value #B", "dropped", 100, ShownUnit.SHARE),
                Column("Value #C", "predicted", 100, ShownUnit.SHARE),
                Column("Value #D", "load entropy", 120, ShownUnit.SHARE),
                Column("Value #E", "dead experts", 120, ShownUnit.SHARE),
                Column("Value #F", "EP rank / mean", 130),
                Column("Value #G", "step", 100, ShownUnit.TEXT),
                Column("name", "module"),
                Column("world", "world"),
            ),
            worst_first="load / mean",
            width=24,
            height=9,
        ),
    ),
)

_DROPS = Row(
    "Drops",
    (
        heat_of("drop_ratio", "Drop rate, layers over time", "Assignments that were dropped. Red is 20 % and more.", (0, 0.2)),
        Panel(
            title="Layers that drop most",
            description=f"Measured from the mask that was applied, the {MOST_SERIES} highest.",
            shape=Shape.SERIES,
            queries=(Query(most(of("drop_ratio")), "layer {{layer}}"),),
            unit=ShownUnit.SHARE,
            empty="No layer drops, or its mask is not seen",
            width=8,
        ),
        Panel(
            title="Measured less predicted",
            description="Drops by the mask less those that capacity explains, the layers that differ most. Not 0: another mask "
            "than that of capacity is at work, or capacity is not applied.",
            shape=Shape.SERIES,
            queries=(Query(most(f"max by (world, layer) (abs({_DIFFERENCE}))"), "layer {{layer}}"),),
            unit=ShownUnit.SHARE,
            empty="Not both are known",
            width=8,
        ),
        Panel(
            title="Ranks that drop most",
            description="All layers of a rank together. One rank alone: its batch is skewed.",
            shape=Shape.SERIES,
            queries=(Query(most(f"max by (world, rank) (pardbg_moe_rank_drop_ratio{{{JOB}}})"), "rank {{rank}}"),),
            unit=ShownUnit.SHARE,
            empty="No rank drops, or its mask is not seen",
            width=8,
        ),
    ),
)

MOE_DASHBOARD = Dashboard(
    uid="pardbg-moe",
    title="pardbg: MoE routing",
    description="Whether the MoE layers of a job route well: drops, load of experts and EP ranks, entropy, routers' gradients.",
    choices=(
        Choice("job_id", "Job", "label_values(pardbg_moe_step, job_id)"),
        Choice("world", "World", 'label_values(pardbg_moe_step{job_id="$job_id"}, world)', has_all=True),
    ),
    rows=(_OVERVIEW, _DROPS, BALANCE, ROUTERS, EXPERT_PARALLEL),
    links=(("One job", "pardbg-job"), ("All agents", "pardbg-agents")),
)
