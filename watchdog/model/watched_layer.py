"""How one MoE layer of a watched job routes, as an agent shows it: figures of one step, and what is ill."""

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import Kind


class LayerIllness(Noun, frozen=True, kw_only=True):
    """One of `names.ROUTING_KINDS` that a layer has, or had until a moment ago, and the first step that showed it."""

    kind: Kind
    since_step: int


class WatchedLayer(Noun, frozen=True, kw_only=True):
    """One layer, over the ranks of its job on this node. None: not known.

    What each figure means exactly is told where it is shown, in `dashboards/moe_metrics.py`.

    Attributes:
        name: qualified name of the module, empty if it is not known.
        step: of the figures, the newest that all ranks here have finished.
        ep_shares: share (0-1) of the load that each rank of an expert-parallel group has; empty without one.
        illnesses: what is ill, or was until a moment ago: one that lasts for less than a scrape is seen, too.
        drops_disagree: whether drops by the mask have long not been those that capacity explains.
        doubts: how many contradictions are in what was counted, that one included.
    """

    layer: int
    name: str = ""
    step: int
    drop_ratio: float | None = None
    predicted_drop_ratio: float | None = None
    load_max_ratio: float | None = None
    max_violation_ratio: float | None = None
    load_variation_ratio: float | None = None
    load_entropy_ratio: float | None = None
    token_entropy_ratio: float | None = None
    dead_ratio: float | None = None
    top_ratio: float | None = None
    z: float | None = None
    aux_loss: float | None = None
    ep_load_max_ratio: float | None = None
    ep_shares: tuple[float, ...] = ()
    router_grad_norm: float | None = None
    illnesses: tuple[LayerIllness, ...] = ()
    drops_disagree: bool = False
    doubts: int = 0
