"""MoE routing: how the tokens of one step were spread over the experts of one layer, as it was counted."""

from pardbg.watchdog.model.base import Noun


class RoutingRow(Noun, frozen=True, kw_only=True):
    """One layer in one step, over all micro-batches of the ranks that were counted. None: not known.

    Attributes:
        layer: number of the layer among those that route, as the model counts its layers.
        counts: assignments to each of the E experts before drops; a token with top-k routing makes k of them.
        counts_are_kept: counts are what drops have left, since the router says nothing else; ``dropped`` comes on top.
        dropped: assignments that the mask which was applied has dropped.
        predicted_dropped: the same by relu(count - capacity), summed over ranks and micro-batches, whose capacity is their own.
        capacity: assignments that one expert takes of one rank's micro-batch; None where nothing is ever dropped.
        top_k: experts a token.
        tokens: tokens routed.
        entropy: mean over tokens of the entropy of the router's probabilities, nats.
        z: mean over tokens of (logsumexp of the logits) squared.
        aux_loss: balancing loss of this layer alone, 1.0 where the load is uniform.
        ep_size: ranks that share the experts of one copy of the layer; expert e is on EP rank e // (E / ep_size).
        router_grad_norm: norm of the gradient of the router's weights.
        loss: training loss of the step.
    """

    step: int
    layer: int
    counts: tuple[int, ...]
    counts_are_kept: bool = False
    dropped: float | None = None
    predicted_dropped: float | None = None
    capacity: float | None = None
    top_k: int | None = None
    tokens: float | None = None
    entropy: float | None = None
    z: float | None = None
    aux_loss: float | None = None
    ep_size: int | None = None
    router_grad_norm: float | None = None
    loss: float | None = None


class RoutingSeries(Noun, frozen=True, kw_only=True, tag="routing"):
    """What was counted of one rank, or of all ranks together, oldest step first.

    Attributes:
        rows: in the order of steps, and of layers within a step.
        names: qualified module name of each layer, where known.
        frozen: layers whose router's weights are told to take no gradient.
        settled: those of them that are frozen with all of their block, or with most of the model: a choice.
    """

    rows: tuple[RoutingRow, ...]
    names: dict[int, str] = {}
    frozen: tuple[int, ...] = ()
    settled: tuple[int, ...] = ()
