"""A rank that trains two layers with routers for twelve steps, knowing nothing of a probe."""

import torch
import torch.distributed as dist
from torch import nn


class TopKRouter(nn.Module):
    """Chooses 2 of 4 experts."""

    def __init__(self) -> None:
        super().__init__()
        self.top_k, self.weight = 2, nn.Parameter(torch.randn(4, 8))

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Logits, weights, ids."""
        logits = rows @ self.weight.T
        scores, ids = logits.softmax(-1).topk(2)
        return logits, scores, ids


class Model(nn.Module):
    """Routers in a list that is filled after it was put into the model."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(2):
            self.layers.append(nn.ModuleDict({"router": TopKRouter()}))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Adds up the scores."""
        return torch.stack([layer["router"](rows)[1].sum() for layer in self.layers]).sum()  # type: ignore[index]


dist.init_process_group("gloo")
model = nn.parallel.DistributedDataParallel(Model())
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(12):
    optimizer.zero_grad()
    model(torch.randn(16, 8)).backward()
    optimizer.step()
dist.destroy_process_group()
