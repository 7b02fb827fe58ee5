"""How even the load of experts and of EP ranks is, and what routers do: the layers and ranks that stand out."""

from pardbg.dashboards.moe_queries import NO_LAYER, heat_of, of
from pardbg.dashboards.panel import Color, Panel, Query, Row, Shape, ShownUnit
from pardbg.dashboards.queries import JOB, MOST_SERIES, least, most

_LAYER, _RANK = "layer {{layer}}", "rank {{rank}}"
_NO_EP = "No expert parallelism seen"


def _curves(  # noqa: PLR0913 - each says what another part of the panel is
    title: str,
    description: str,
    expr: str,
    unit: ShownUnit = ShownUnit.COUNT,
    *,
    legend: str = _LAYER,
    empty: str = NO_LAYER,
) -> Panel:
    return Panel(
        title=title,
        description=description,
        shape=Shape.SERIES,
        queries=(Query(expr, legend),),
        unit=unit,
        empty=empty,
        width=8,
    )


BALANCE = Row(
    "Load of experts",
    (
        heat_of(
            "load_max_ratio",
            "Busiest expert / mean, layers over time",
            "Load of the busiest expert / the mean. Green is even, red is four times the mean and more.",
            (1, 4),
            ShownUnit.COUNT,
        ),
        heat_of(
            "load_entropy_ratio",
            "Entropy of the load, layers over time",
            "Entropy of the mean load, as a share of the highest possible. Green is even; red is 80 % and less.",
            (0.8, 1),
            is_low_bad=True,
        ),
        _curves(
            "Busiest experts",
            f"Load of the busiest expert / the mean (MaxVio + 1), the {MOST_SERIES} highest layers. With few tokens an expert "
            "this is above 1 by chance alone.",
            most(of("load_max_ratio")),
        ),
        _curves("Spread of the load", "Standard deviation / mean of the load of experts.", most(of("load_variation_ratio"))),
        _curves(
            "Lowest entropy of the load",
            "As a share of the highest possible: 100 % is even.",
            least(of("load_entropy_ratio", "min")),
            ShownUnit.SHARE,
        ),
        _curves(
            "Experts without a token",
            "Share of a layer's experts that no token was assigned to in the step.",
            most(of("dead_expert_ratio")),
            ShownUnit.SHARE,
        ),
        _curves(
            "Share of the busiest expert",
            "In all assignments of the layer. With top-k routing 1 / k is the most there can be.",
            most(of("top_expert_ratio")),
            ShownUnit.SHARE,
        ),
        _curves(
            "Balancing loss",
            "Of each layer alone, without its coefficient; 1 is uniform.",
            most(of("aux_loss")),
            empty="No layer tells its balancing loss",
        ),
    ),
)

ROUTERS = Row(
    "Routers",
    (
        _curves(
            "Least sure routers",
            "Entropy of a token's probabilities, as a share of the highest possible. High and flat: the router does not learn.",
            most(of("token_entropy_ratio")),
            ShownUnit.SHARE,
        ),
        _curves(
            "Surest routers",
            "The lowest entropy of a token's probabilities. Low with an even load is good, with an uneven one collapse.",
            least(of("token_entropy_ratio", "min")),
            ShownUnit.SHARE,
        ),
        _curves(
            "Largest logits",
            "z: mean of the square of logsumexp of the logits. It rises with the logits.",
            most(of("router_z")),
        ),
        _curves(
            "Smallest gradients of routers",
            "Norm of the gradient of the router's weights. 0: the router does not learn.",
            least(of("router_gradient_norm", "min")),
            empty="No router's gradient is seen",
        ),
        _curves(
            "Largest gradients of routers", "The same, the highest.", most(of("router_gradient_norm")), empty="None is seen"
        ),
        Panel(
            title="Steps behind the first rank, routing",
            description="By the newest step whose routing was read. More than a few: the rank's counts do not come through.",
            shape=Shape.SERIES,
            queries=(
                Query(
                    most(f"scalar(max(pardbg_moe_rank_step{{{JOB}}})) - max by (world, rank) (pardbg_moe_rank_step{{{JOB}}})"),
                    _RANK,
                ),
            ),
            empty=NO_LAYER,
            width=8,
        ),
    ),
)

EXPERT_PARALLEL = Row(
    "Expert parallelism",
    (
        heat_of(
            "ep_load_max_ratio",
            "Hottest EP rank / mean, layers over time",
            "Rows that the busiest EP rank receives / the mean. Green is even, red is twice the mean and more.",
            (1, 2),
            ShownUnit.COUNT,
        ),
        _curves(
            "Layers with the hottest EP ranks",
            "Rows that the busiest EP rank receives in the all-to-all / the mean: the others wait for it.",
            most(of("ep_load_max_ratio")),
            empty=_NO_EP,
        ),
        Panel(
            title="Load of EP ranks / mean",
            description=f"All layers together, the {MOST_SERIES} highest. One that is hot here is hot in most layers.",
            shape=Shape.BARS,
            queries=(Query(most(f"max by (world, ep_rank) (pardbg_moe_ep_rank_load_ratio{{{JOB}}})"), "EP rank {{ep_rank}}"),),
            thresholds=((1.5, Color.WARNING),),
            empty=_NO_EP,
            width=8,
        ),
        _curves(
            "Assignments that ranks send / mean",
            "Rows that a rank sends to experts / the mean of ranks: not 1 where ranks have unequal batches.",
            most(
                f"max by (world, rank) (pardbg_moe_rank_assignments{{{JOB}}}) / "
                f"scalar(avg(max by (world, rank) (pardbg_moe_rank_assignments{{{JOB}}})))"
            ),
            legend=_RANK,
        ),
    ),
)
