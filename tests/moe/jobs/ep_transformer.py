"""A tiny causal transformer whose MoE layers share their experts over all ranks: top-2 routing, capacity, uneven all-to-all.

Shapes: B sequences, S positions, T = B * S tokens of one rank, D width, E experts of a layer, K choices a token, N kept rows.
Expert e lives on rank e // (E / ranks). A choice beyond the capacity is dropped: its token goes on without that expert.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own name for it
from torch.utils.checkpoint import checkpoint

EXPERT_COUNT = 16
TOP_K = 2
LAYER_COUNT = 3
VOCABULARY = 32
WIDTH = 32
HEAD_COUNT = 2
LENGTH = 64


@dataclass(frozen=True)
class Routed:
    """What one MoE layer did with one micro-batch: the gate, its input [T, D], what it dropped ([T, K] bool), its capacity."""

    gate: "TopKGate"
    hidden: Tensor
    dropped: Tensor
    capacity: int


class Observer(Protocol):
    """Hears of each layer's routing, once a micro-batch."""

    def see(self, layer: int, routed: Routed) -> None:
        """Called in the forward pass, recomputed or not."""


class TopKGate(nn.Module):
    """Chooses K experts for each token and drops what is beyond the capacity. Answers as DeepSpeed's gate of this name does.

    Attributes:
        bias: [E], added for the choice only; takes no gradient.
        is_cut_off: its weights get no gradient, by a mistake that people make.
    """

    bias: Tensor

    def __init__(self, capacity_factor: float) -> None:
        super().__init__()
        self.k = TOP_K
        self.capacity_factor = capacity_factor
        self.is_cut_off = False
        self.weight = nn.Parameter(torch.randn(EXPERT_COUNT, WIDTH) / math.sqrt(WIDTH))
        self.register_buffer("bias", torch.zeros(EXPERT_COUNT))

    def forward(self, hidden: Tensor) -> tuple[Tensor, int, int, Tensor, Tensor, Tensor, Tensor]:
        """Balancing loss, capacity, E, ids (-1: dropped), places and weights [K, T] each, choices before drops [E]."""
        logits = F.linear(hidden, self.weight.detach() if self.is_cut_off else self.weight)
        ids = self.choose(logits)
        chances = torch.softmax(logits, dim=-1)
        weights = chances.gather(-1, ids)
        weights = weights / weights.sum(-1, keepdim=True)
        counts = torch.zeros(EXPERT_COUNT, dtype=torch.int64).scatter_add(0, ids.flatten(), torch.ones_like(ids.flatten()))
        balancing_loss = EXPERT_COUNT * (counts / ids.numel() * chances.mean(0)).sum()  # 1.0 where the load is uniform
        capacity = self.capacity(len(hidden))
        places = _places(weights.detach(), ids, counts)
        kept_ids = torch.where(places < capacity, ids, -1)
        return balancing_loss, capacity, EXPERT_COUNT, kept_ids.T.int(), places.T.int(), weights.T, counts

    def choose(self, logits: Tensor) -> Tensor:
        """Ids [T, K] of logits [T, E]."""
        return torch.topk(logits + self.bias, self.k, dim=-1).indices

    def capacity(self, token_count: int) -> int:
        """Choices that one expert takes of one rank's micro-batch."""
        return math.ceil(token_count * self.k / EXPERT_COUNT * self.capacity_factor)


class TopKRouter(TopKGate):
    """The same without a capacity. Answers as the routers of transformers do."""

    def forward(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # type: ignore[override]  # another framework
        """Logits [T, E], weights [T, K], ids [T, K]."""
        logits = F.linear(hidden, self.weight)
        ids = self.choose(logits)
        weights = torch.softmax(logits, dim=-1).gather(-1, ids)
        return logits, weights / weights.sum(-1, keepdim=True), ids


def _places(weights: Tensor, ids: Tensor, counts: Tensor) -> Tensor:
    """Where each choice [T, K] stands among those of its expert, the likeliest first."""
    flat_ids = ids.flatten()
    order = weights.flatten().argsort(descending=True, stable=True)
    order = order[flat_ids[order].argsort(stable=True)]
    in_order = torch.arange(len(order)) - (counts.cumsum(0) - counts)[flat_ids[order]]
    return torch.empty_like(order).scatter(0, order, in_order).view_as(ids)


class _AllToAll(torch.autograd.Function):
    """Rows to and from every rank; the gradient goes the way back."""

    @staticmethod
    def forward(ctx: "torch.autograd.function.FunctionCtx", rows: Tensor, sent: list[int], received: list[int]) -> Tensor:
        ctx.sent, ctx.received = sent, received  # type: ignore[attr-defined]  # torch's way to keep what is no tensor
        return _exchange(rows, sent, received)

    @staticmethod
    def backward(ctx: "torch.autograd.function.FunctionCtx", *gradients: Tensor) -> tuple[Tensor, None, None]:
        return _exchange(gradients[0], ctx.received, ctx.sent), None, None  # type: ignore[attr-defined]  # see above


def _exchange(rows: Tensor, sent: list[int], received: list[int]) -> Tensor:
    out = rows.new_empty((sum(received), *rows.shape[1:]))
    dist.all_to_all_single(out, rows.contiguous(), received, sent)
    return out


class MoELayer(nn.Module):
    """The gate, and this rank's share of the experts."""

    def __init__(self, number: int, capacity_factor: float | None) -> None:
        super().__init__()
        self.number = number
        self.ep_size = dist.get_world_size()
        self.num_experts = EXPERT_COUNT
        self.observer: Observer | None = None
        self.balancing_loss = torch.zeros(())
        self.gate = TopKRouter(0.0) if capacity_factor is None else TopKGate(capacity_factor)
        local = EXPERT_COUNT // self.ep_size
        self.widen = nn.Parameter(torch.randn(local, WIDTH, 2 * WIDTH) / math.sqrt(WIDTH))
        self.narrow = nn.Parameter(torch.randn(local, 2 * WIDTH, WIDTH) / math.sqrt(2 * WIDTH))

    def forward(self, hidden: Tensor) -> Tensor:
        """Tokens [T, D] to tokens [T, D]."""
        if isinstance(self.gate, TopKRouter):
            _, weights, ids = self.gate(hidden)
            balancing_loss, capacity = self.balancing_loss, 0
        else:
            balancing_loss, capacity, _, ids, _, weights, _ = self.gate(hidden)
            ids, weights = ids.T, weights.T
        answer: Tensor = self._spread(hidden, balancing_loss, ids, weights, capacity)
        return answer

    @torch.compiler.disable  # type: ignore[untyped-decorator]  # as everybody does with sizes that depend on data
    def _spread(self, hidden: Tensor, balancing_loss: Tensor, ids: Tensor, weights: Tensor, capacity: int) -> Tensor:
        self.balancing_loss = balancing_loss
        if self.observer is not None:
            self.observer.see(self.number, Routed(self.gate, hidden.detach(), ids < 0, capacity))
        token, choice = (ids >= 0).nonzero(as_tuple=True)
        expert, order = ids[token, choice].sort(stable=True)
        token, choice = token[order], choice[order]
        answers = self._ask_experts(hidden[token], torch.bincount(expert, minlength=EXPERT_COUNT))
        return torch.zeros_like(hidden).index_add(0, token, answers * weights[token, choice].unsqueeze(-1))

    def _ask_experts(self, rows: Tensor, row_counts: Tensor) -> Tensor:
        """Rows [N, D] in the order of experts, ``row_counts`` [E]; the answers come in the same order."""
        theirs = torch.empty_like(row_counts)
        dist.all_to_all_single(theirs, row_counts)
        sent = row_counts.view(self.ep_size, -1).sum(1).tolist()
        by_source = theirs.view(self.ep_size, -1)  # [ranks, local experts]
        received = by_source.sum(1).tolist()
        arrived: Tensor = _AllToAll.apply(rows, sent, received)  # type: ignore[no-untyped-call]  # torch's
        answers: Tensor = _AllToAll.apply(  # type: ignore[no-untyped-call]  # torch's
            self._own_experts(arrived, by_source), received, sent
        )
        return answers

    def _own_experts(self, rows: Tensor, by_source: Tensor) -> Tensor:
        """Rows in the order of their source, and of experts within a source; each expert works on one padded block."""
        totals = by_source.sum(0)
        longest = int(totals.max())
        first = by_source.cumsum(0) - by_source + torch.arange(len(totals)) * longest  # where each part of a block begins
        lengths = by_source.flatten()
        place = (first.flatten() - lengths.cumsum(0) + lengths).repeat_interleave(lengths) + torch.arange(len(rows))
        blocks = rows.new_zeros(len(totals) * longest, WIDTH).index_copy(0, place, rows)
        done = F.gelu(blocks.view(len(totals), -1, WIDTH) @ self.widen) @ self.narrow
        return done.flatten(0, 1)[place]


class Block(nn.Module):
    """Attention, then the MoE layer."""

    def __init__(self, number: int, capacity_factor: float | None) -> None:
        super().__init__()
        self.before_attention, self.before_experts = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.to_qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = MoELayer(number, capacity_factor)

    def forward(self, x: Tensor) -> Tensor:
        """[B, S, D] to [B, S, D]."""
        heads = self.to_qkv(self.before_attention(x)).unflatten(-1, (3, HEAD_COUNT, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        mlp: Tensor = self.mlp(self.before_experts(x).flatten(0, 1))
        return x + mlp.view_as(x)


class Transformer(nn.Module):
    """Without a capacity nothing is dropped.

    ``recompute``: `none`, or activation checkpointing of the kind `reentrant` or `saved` (torch's newer one).
    """

    def __init__(self, capacity_factor: float | None, recompute: str = "none") -> None:
        super().__init__()
        self.recompute = recompute
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block(number, capacity_factor) for number in range(LAYER_COUNT))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, text: Tensor) -> Tensor:
        """Logits [B, S, vocabulary] of the next characters of text [B, S]."""
        x = self.tokens(text) + self.positions.weight[: text.shape[1]]
        for block in self.blocks:
            x = block(x) if self.recompute == "none" else checkpoint(block, x, use_reentrant=self.recompute == "reentrant")
        logits: Tensor = self.head(x)
        return logits


def moe_layers(model: nn.Module) -> Sequence[MoELayer]:
    """In the order of the model."""
    return [module for module in model.modules() if isinstance(module, MoELayer)]
