"""Routers of frameworks that are not installed here, or need a GPU: same class name, attributes and answer, a few lines each.

What they answer is taken from their sources (see ``moe-routing.md``), not from a run of them.
"""

from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

EXPERTS, HIDDEN = 4, 8


class _Scores(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(EXPERTS, HIDDEN))

    def chances(self, rows: torch.Tensor) -> torch.Tensor:
        return (rows @ self.weight.T).softmax(-1)


class MegatronRouter(_Scores):
    """``(probs, routing_map)`` of Megatron-Core >= 0.10, after capacity. It needs CUDA, so this is not itself."""

    def __init__(self, capacity_factor: float | None = None, *, pads: bool = False, number: int = 1, **more: Any) -> None:
        super().__init__()
        self.topk, self.layer_number = 2, number
        self.config = SimpleNamespace(
            num_moe_experts=EXPERTS,
            moe_router_topk=2,
            expert_model_parallel_size=2,
            moe_expert_capacity_factor=capacity_factor,
            moe_pad_expert_input_to_capacity=pads,
            **more,
        )

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """As the framework does."""
        return self.routing(rows @ self.weight.T)

    def routing(self, logits: torch.Tensor, padding_mask: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """As the framework does, with drops by probability or by position."""
        assert padding_mask is None
        is_sigmoid = getattr(self.config, "moe_router_score_function", "softmax") == "sigmoid"
        chances = logits.float().sigmoid() if is_sigmoid else logits.softmax(-1)
        if getattr(self.config, "moe_router_num_groups", None):
            chances = chances * torch.tensor([1.0, 1.0, 0.0, 0.0])
        rows = logits
        wanted = torch.zeros_like(chances, dtype=torch.bool).scatter(1, chances.topk(2).indices, value=True)
        masked = chances * wanted
        factor = self.config.moe_expert_capacity_factor
        if factor is None:
            return masked, wanted
        capacity = -(-int(rows.shape[0] * 2 * factor) // EXPERTS)
        is_by_place = getattr(self.config, "moe_token_drop_policy", "probs") == "position"
        order = wanted * torch.arange(len(rows), 0, -1).unsqueeze(1) if is_by_place else masked
        within = torch.zeros_like(wanted).scatter(0, order.topk(capacity, dim=0).indices, value=True)
        return masked * within, within if self.config.moe_pad_expert_input_to_capacity else within & wanted


class OldMegatronRouter(_Scores):
    """``(scores, indices)`` of 0.6 to 0.9: a choice that was dropped is the largest number there is."""

    def __init__(self) -> None:
        super().__init__()
        self.topk = 2
        self.config = SimpleNamespace(num_moe_experts=EXPERTS)

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """As the framework does."""
        scores, indices = self.chances(rows).topk(2)
        indices[0, 1] = torch.iinfo(torch.int64).max
        return scores, indices


class TokenChoiceTopKRouter(_Scores):
    """torchtitan: ``(scores [.., k], ids [.., k], scores [.., E])`` of sigmoids."""

    top_k, num_experts = 2, EXPERTS

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """As the framework does."""
        scores = (rows @ self.weight.T).sigmoid()
        return *scores.topk(2), scores


class AutoEP(_Scores):
    """DeepSpeed AutoEP: the third part is how many each expert has got, integers of one dimension."""

    top_k, num_experts = 2, EXPERTS

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """As the framework does."""
        scores, ids = self.chances(rows).topk(2)
        return scores, ids, torch.bincount(ids.reshape(-1), minlength=EXPERTS).int()


class TopKGate(nn.Module):
    """DeepSpeed: ``(l_aux, combine_weights, dispatch_mask [S,E,C], exp_counts)``, k 1."""

    def __init__(self) -> None:
        super().__init__()
        self.wg = nn.Linear(HIDDEN, EXPERTS, bias=False)
        self.k = 1

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """As the framework does."""
        chances = self.wg(rows).softmax(-1)
        chosen = torch.zeros_like(chances).scatter(1, chances.argmax(-1, keepdim=True), 1)
        capacity, places = 2, (chosen.cumsum(0) - 1) * chosen
        kept = chosen * (places < capacity)
        mask = kept.unsqueeze(-1) * nn.functional.one_hot(places.sum(-1).long().clamp(max=capacity - 1), capacity).unsqueeze(1)
        aux = (chances.mean(0) * chosen.mean(0)).sum() * EXPERTS
        return aux, chances.unsqueeze(-1) * mask, mask.bool(), chosen.sum(0).long().detach().cpu()


class SparseTopKGate(TopKGate):
    """The newer answer: ``(l_aux, C, E, indices [k,S], locations, gates, exp_counts)``, -1 for what was dropped."""

    def forward(self, rows: torch.Tensor) -> Any:
        """As the framework does."""
        aux, combined, mask, counts = super().forward(rows)
        kept = mask.any(-1)
        ids = torch.where(kept.any(-1), kept.int().argmax(-1), -1).int().unsqueeze(0)
        return aux, 2, EXPERTS, ids, torch.zeros_like(ids), combined.sum((1, 2)).unsqueeze(0), counts


class GShardGate(_Scores):
    """FastMoE: ``(ids, score)``, -1 for what was dropped."""

    top_k, tot_expert = 2, EXPERTS

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """As the framework does."""
        scores, ids = self.chances(rows).topk(2)
        ids[:2, 1] = -1
        return ids, scores


class MOELayer(nn.Module):
    """Tutel: what its layer keeps of the last pass."""

    num_global_experts = EXPERTS

    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.ModuleList([nn.Linear(HIDDEN, EXPERTS)])
        self.gates[0].top_k = 2  # type: ignore[assignment]

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """As the framework does."""
        chances = self.gates[0](rows).softmax(-1)
        scores, ids = chances.topk(2)
        self.dispatch_count = torch.bincount(ids.reshape(-1), minlength=EXPERTS).int()
        self.l_aux = (chances.mean(0) * self.dispatch_count / ids.numel()).sum() * EXPERTS
        gated: torch.Tensor = rows * scores.sum(-1, keepdim=True)
        return gated


class LearnedRouter(nn.Module):
    """MegaBlocks: ``(scores, weights, ids)``; what is dropped, is dropped later."""

    def __init__(self) -> None:
        super().__init__()
        self.args = SimpleNamespace(moe_num_experts=EXPERTS, moe_top_k=2)
        self.layer = nn.Linear(HIDDEN, EXPERTS, bias=False)

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """As the framework does."""
        scores = self.layer(rows).softmax(-1)
        return scores, *scores.topk(2)


class OlmoeSparseMoeBlock(nn.Module):
    """transformers 4: the gate is a plain linear layer, and the block around it chooses."""

    top_k, num_experts = 2, EXPERTS

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(HIDDEN, EXPERTS, bias=False)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """As the framework does."""
        scores: torch.Tensor = self.gate(rows).softmax(-1)
        return scores.topk(2).values.sum(-1)


class OldDeepseekV2MoEGate(_Scores):
    """transformers 4: the order of ids and weights is the other way round."""

    top_k, n_routed_experts = 2, EXPERTS

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """As the framework does."""
        scores, ids = self.chances(rows).topk(2)
        return ids, scores


MegatronRouter.__name__ = OldMegatronRouter.__name__ = "TopKRouter"
AutoEP.__name__ = "TokenChoiceTopKRouter"
SparseTopKGate.__name__ = "TopKGate"
