"""An exact slow reference of what was routed: counts one choice at a time, and writes JSONL of the contract's form.

It knows of recomputation by asking the program (`Reference.listens`), not by the means that the probe has.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from tests.moe.jobs.ep_transformer import EXPERT_COUNT, TOP_K, Routed


@dataclass
class Line:
    """One layer in one step of one rank: the contract's "routing counts"."""

    step: int
    layer: int
    counts: list[int] = field(default_factory=lambda: [0] * EXPERT_COUNT)
    dropped: int = 0
    capacity: int = 0
    top_k: int = TOP_K
    tokens: int = 0
    entropy: float = 0.0
    ep_size: int = 0
    router_grad_norm: float = 0.0
    loss: float = 0.0

    def add(self, routed: Routed) -> None:
        """Counts a micro-batch."""
        logits = routed.hidden @ routed.gate.weight.detach().T
        for ids in routed.gate.choose(logits).tolist():
            for expert in ids:
                self.counts[expert] += 1
        chances = torch.softmax(logits, dim=-1)
        entropy = -float((chances * chances.log()).sum())
        self.entropy = (self.entropy * self.tokens + entropy) / (self.tokens + len(logits))
        self.tokens += len(logits)
        self.dropped += sum(is_dropped for row in routed.dropped.tolist() for is_dropped in row)
        self.capacity = routed.capacity


class Reference:
    """What was counted on one rank."""

    def __init__(self) -> None:
        self.listens = False
        self.lines: list[Line] = []
        self.open_lines: dict[int, Line] = {}

    def see(self, layer: int, routed: Routed) -> None:
        """Counts it if it is to be learnt from."""
        if self.listens:
            self.open_lines.setdefault(layer, Line(step=0, layer=layer)).add(routed)

    def finish_step(self, step: int, loss: float, grad_norms: dict[int, float], ep_size: int) -> None:
        """Keeps the lines of a step, whose loss is that of all ranks."""
        for layer, line in sorted(self.open_lines.items()):
            self.lines.append(replace(line, step=step, loss=loss, router_grad_norm=grad_norms[layer], ep_size=ep_size))
        self.open_lines.clear()


def write_lines(path: Path, lines: Iterable[Line]) -> None:
    """JSONL."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(vars(line), separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")
