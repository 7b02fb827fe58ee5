"""Metrics of MoE routing: one series a layer, a rank or a place in expert-parallel groups, never one an expert.

Each figure is of one step: the newest that all ranks of the job on the host have finished. It tells of those ranks alone, so
that the hosts of one job may differ. ``c`` is the assignments that each of a layer's E experts is asked for before drops, ``A``
their sum: a token with top-k routing makes k. No figure pools layers, but for those of ranks, which say so. Sources: capacity
and auxiliary loss as in the Switch Transformer (arXiv 2101.03961), the loss in the scale of Megatron-Core, where 1 is uniform
for any k; CV as in arXiv 1701.06538; MaxVio of arXiv 2408.15664; z as in ST-MoE (arXiv 2202.08906).
"""

from collections.abc import Callable

from pardbg.dashboards.metric import Kind, Metric, Topic, each, one
from pardbg.dashboards.scene import EpRankShown, LayerShown, RankShown
from pardbg.watchdog.model.names import ROUTING_KINDS
from pardbg.watchdog.model.watched_layer import WatchedLayer


def _figure(name: str, text: str, read: Callable[[WatchedLayer], float | None]) -> Metric[LayerShown]:
    return Metric(f"pardbg_moe_{name}", text, one(lambda shown: read(shown.layer)))


def _illnesses(shown: LayerShown) -> list[tuple[str, float]]:
    ill = {illness.kind for illness in shown.layer.illnesses}
    return [(kind.value, float(kind in ill)) for kind in ROUTING_KINDS]


MOE_LAYER: Topic[LayerShown] = Topic(
    labels=("job_id", "world", "layer", "host"),
    label_values=lambda shown: (shown.job.job_id, shown.job.world, str(shown.layer.layer), shown.host),
    of=lambda scene: scene.layers,
    metrics=(
        Metric(
            "pardbg_moe_layer_info",
            "An MoE layer, with the name of its module.",
            lambda shown: (((shown.layer.name,), 1),),
            kind=Kind.INFO,
            labels=("name",),
        ),
        _figure(
            "step", "The step that the layer's figures are of, the newest that all ranks here have.", lambda layer: layer.step
        ),
        Metric(
            "pardbg_moe_illness",
            "Whether the layer has this illness, 1 or 0; one that is over counts for another minute, for scrapes.",
            each(_illnesses),
            labels=("kind",),
        ),
        Metric(
            "pardbg_moe_illness_since_step",
            "The first step that showed the illness; absent while the layer is well.",
            each(lambda shown: [(illness.kind.value, illness.since_step) for illness in shown.layer.illnesses]),
            labels=("kind",),
        ),
        _figure(
            "doubts",
            "Contradictions in what was counted of the layer. `pardbg moe` says them in words.",
            lambda layer: layer.doubts,
        ),
        _figure(
            "drops_disagree",
            "Whether measured and predicted drops have differed for eight steps by more than 2 % of A and a quarter, 1 or 0.",
            lambda layer: None if None in {layer.drop_ratio, layer.predicted_drop_ratio} else float(layer.drops_disagree),
        ),
        _figure(
            "drop_ratio",
            "Assignments that the mask which was applied has dropped, / A; absent where the mask is not seen.",
            lambda layer: layer.drop_ratio,
        ),
        _figure(
            "predicted_drop_ratio",
            "Sum of max(0, c - capacity) over experts, ranks and micro-batches, / A; absent where nothing has a capacity.",
            lambda layer: layer.predicted_drop_ratio,
        ),
        _figure(
            "load_max_ratio",
            "Load of the busiest expert, / the mean: max(c) E / A. 1 is even.",
            lambda layer: layer.load_max_ratio,
        ),
        _figure(
            "max_violation_ratio",
            "MaxVio (arXiv 2408.15664): (max(c) - mean(c)) / mean(c). 0 is even.",
            lambda layer: layer.max_violation_ratio,
        ),
        _figure(
            "load_variation_ratio",
            "Coefficient of variation of the load: standard deviation of c / mean(c). 0 is even.",
            lambda layer: layer.load_variation_ratio,
        ),
        _figure(
            "load_entropy_ratio",
            "Entropy of the mean load f = c / A: -sum(f ln f) / ln E. 1 is even, 0 is one expert for all.",
            lambda layer: layer.load_entropy_ratio,
        ),
        _figure(
            "token_entropy_ratio",
            "Mean over tokens of the entropy of the router's probabilities p: -sum(p ln p) / ln E. Low is sure, not ill.",
            lambda layer: layer.token_entropy_ratio,
        ),
        _figure("dead_expert_ratio", "Experts that no token was assigned to in the step, / E.", lambda layer: layer.dead_ratio),
        _figure(
            "top_expert_ratio", "Share of the busiest expert in all assignments: max(c) / A.", lambda layer: layer.top_ratio
        ),
        _figure(
            "router_z", "Mean over tokens of the square of logsumexp of the router's logits (ST-MoE).", lambda layer: layer.z
        ),
        _figure(
            "aux_loss",
            "Balancing loss of this layer alone, without its coefficient, in the scale where 1 is uniform routing: E sum(f P).",
            lambda layer: layer.aux_loss,
        ),
        _figure("router_gradient_norm", "Norm of the gradient of the router's weights.", lambda layer: layer.router_grad_norm),
        _figure(
            "ep_load_max_ratio",
            "Rows that the busiest rank of an expert-parallel group receives in the all-to-all, before drops, / the mean of "
            "its ranks; 1 is even.",
            lambda layer: layer.ep_load_max_ratio,
        ),
    ),
)

EP_RANK: Topic[EpRankShown] = Topic(
    labels=("job_id", "world", "ep_rank", "host"),
    label_values=lambda shown: (shown.job.job_id, shown.job.world, str(shown.ep_rank), shown.host),
    of=lambda scene: scene.ep_ranks,
    metrics=(
        Metric(
            "pardbg_moe_ep_rank_load_ratio",
            "Load of the experts at this place in expert-parallel groups, / the mean over places; the mean of all layers.",
            one(lambda shown: shown.load_ratio),
        ),
    ),
)

MOE_RANK: Topic[RankShown] = Topic(
    labels=("job_id", "world", "rank", "host"),
    label_values=lambda shown: (shown.job.job_id, shown.job.world, str(shown.rank.rank), shown.host),
    of=lambda scene: scene.ranks,
    metrics=(
        Metric(
            "pardbg_moe_rank_step",
            "The newest step of which the rank's routing is known; absent if it counts none.",
            one(lambda shown: shown.rank.routed_step),
        ),
        Metric(
            "pardbg_moe_rank_assignments",
            "Assignments that the rank's tokens made in that step, all its layers together: rows that it sends to experts.",
            one(lambda shown: shown.rank.assignments),
        ),
        Metric(
            "pardbg_moe_rank_drop_ratio",
            "Share of those that were dropped, all its layers together: capacity is each rank's own, so ranks differ.",
            one(lambda shown: shown.rank.drop_ratio),
        ),
    ),
)
