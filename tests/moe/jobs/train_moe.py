"""Trains a small MoE transformer with expert parallelism; each scenario goes on from the same checkpoint of a healthy run.

`python -m tests.moe.jobs.train_moe FOLDER --scenarios healthy collapse`, once for each rank, with RANK, WORLD_SIZE, MASTER_*.
Each rank writes FOLDER/SCENARIO/routing_rank_N.jsonl, whose steps are those of a run of this scenario alone, and
FOLDER/all/routing_rank_N.jsonl, whose steps are those that its optimizer has made. Then it touches FOLDER/trained.N, and waits
for FOLDER/leave.
"""

import argparse
import copy
import ctypes
import signal
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from tests.moe.jobs.ep_transformer import LENGTH, VOCABULARY, MoELayer, Transformer, moe_layers
from tests.moe.jobs.reference import Line, Reference, write_lines
from tests.moe.jobs.scenarios import HEALTHY_STEPS, SCENARIOS, Scenario
from tests.moe.jobs.text import Text, skewed

BATCH = 4
CAPACITY_FACTOR = 2.0
BALANCING = 0.05
LEARNING_RATE = 3e-3
FEEDBACK = 0.025
CONTROL = 0.05
AT_ONCE = 0.7
"""How far the bias moves at first for a load that is wanted; the control does the rest."""
POLL_S = 0.05
PR_SET_PDEATHSIG = 1
TIMEOUT = timedelta(minutes=5)


class Training:
    """One rank."""

    def __init__(self, options: argparse.Namespace, step_count: int) -> None:
        self.micro_batches: int = options.accumulate
        torch.manual_seed(options.seed)
        self.model = Transformer(None if options.dropless else CAPACITY_FACTOR, options.recompute)
        self.layers = moe_layers(self.model)
        self.reference = Reference()
        for layer in self.layers:
            layer.observer = self.reference
        text = Text(options.seed, dist.get_rank(), VOCABULARY, LENGTH)
        text_of_all = text.batch(BATCH * self.micro_batches * step_count)
        self.batches = torch.split(text_of_all, BATCH * self.micro_batches)
        own = {id(each) for layer in self.layers for each in (layer.widen, layer.narrow)}
        self.alike = [each for each in self.model.parameters() if id(each) not in own]
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=LEARNING_RATE, fused=True)
        self.forward = torch.compile(self.model, backend="aot_eager") if options.compile else self.model
        self.step = 0

    def train(self, scenario: Scenario, first: int) -> list[Line]:
        """The steps of a scenario, of which the first has this number; what was counted in them."""
        self._arrange(scenario)
        begin = len(self.reference.lines)
        for step in range(first, first + scenario.steps):
            text = self.batches[step - 1]
            text = skewed(text) if step - first < scenario.skewed_steps else text
            loss = sum(self._micro_batch(part, scenario) for part in torch.split(text, BATCH)) / self.micro_batches
            seen = self.reference.open_lines
            loss, *counts = self._add_up([loss, *(count for layer in sorted(seen) for count in seen[layer].counts)])
            self.step += 1
            norms = {layer.number: _gradient_norm(layer) for layer in self.layers}
            self.reference.finish_step(self.step, loss / dist.get_world_size(), norms, dist.get_world_size())
            self.optimizer.step()
            self.optimizer.zero_grad()
            self._steer(scenario, torch.tensor(counts).view(len(self.layers), -1))
        return self.reference.lines[begin:]

    def checkpoint(self) -> tuple[Any, Any]:
        """What `restore` takes."""
        return copy.deepcopy(self.model.state_dict()), copy.deepcopy(self.optimizer.state_dict())

    def restore(self, checkpoint: tuple[Any, Any]) -> None:
        """Goes back to a checkpoint."""
        model, optimizer = checkpoint
        self.model.load_state_dict(model)
        self.optimizer.load_state_dict(copy.deepcopy(optimizer))

    def _arrange(self, scenario: Scenario) -> None:
        for layer in self.layers:
            is_meant = layer.number == scenario.layer
            layer.gate.capacity_factor = scenario.capacity_factor or CAPACITY_FACTOR if is_meant else CAPACITY_FACTOR
            layer.gate.is_cut_off = scenario.is_cut_off and is_meant
            if is_meant and scenario.wanted_load:
                layer.gate.bias += AT_ONCE * (torch.tensor(scenario.wanted_load) - 1)

    def _micro_batch(self, text: Tensor, scenario: Scenario) -> float:
        self.reference.listens = True
        logits: Tensor = self.forward(text[:, :-1])
        self.reference.listens = False
        loss = F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
        balancing = 0.0 if scenario.is_unbalanced else BALANCING
        total = loss + balancing * torch.stack([layer.balancing_loss for layer in self.layers]).sum()
        (total / self.micro_batches / dist.get_world_size()).backward()  # type: ignore[no-untyped-call]  # torch's
        return float(loss.detach())

    def _add_up(self, figures: list[float]) -> list[float]:
        """Over all ranks, gradients and figures. Gradients of experts are whole already: they come from all ranks' tokens."""
        gradients = [each.grad for each in self.alike if each.grad is not None]
        together = torch.cat([*(gradient.flatten() for gradient in gradients), torch.tensor(figures)])
        dist.all_reduce(together)
        *totals, summed = torch.split(together, [*(gradient.numel() for gradient in gradients), len(figures)])
        for gradient, total in zip(gradients, totals, strict=True):
            gradient.copy_(total.view_as(gradient))
        added: list[float] = summed.tolist()
        return added

    def _steer(self, scenario: Scenario, counts: Tensor) -> None:
        """Moves the bias of one router, by the counts [layers, E] of all ranks."""
        if scenario.layer is None:
            return
        load = counts[scenario.layer] / counts[scenario.layer].mean()
        bias = self.layers[scenario.layer].gate.bias
        if scenario.is_unbalanced:
            bias += FEEDBACK * (load - 1)
        if scenario.wanted_load:
            bias += CONTROL * (torch.tensor(scenario.wanted_load) - load)


def _gradient_norm(layer: MoELayer) -> float:
    gradient = layer.gate.weight.grad
    return 0.0 if gradient is None else float(gradient.norm())


def main() -> None:
    """Trains, and waits to be told to leave."""
    options = _options()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # nothing of it outlives the tests
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=TIMEOUT)
    scenarios = {name: SCENARIOS[name] for name in options.scenarios}
    training = Training(options, options.before + max([0, *(scenario.steps for scenario in scenarios.values())]))
    file = f"routing_rank_{dist.get_rank()}.jsonl"
    before = training.train(Scenario(steps=options.before), 1)
    checkpoint = training.checkpoint()
    for name, scenario in scenarios.items():
        training.restore(checkpoint)
        offset = training.step - options.before
        lines = training.train(scenario, options.before + 1)
        write_lines(options.folder / name / file, [*before, *(replace(line, step=line.step - offset) for line in lines)])
    write_lines(options.folder / "all" / file, training.reference.lines)
    (options.folder / f"trained.{dist.get_rank()}").touch()
    while not (options.folder / "leave").exists():
        time.sleep(POLL_S)
    dist.barrier()
    dist.destroy_process_group()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scenarios", nargs="*", choices=sorted(SCENARIOS), default=[])
    parser.add_argument("--before", type=int, default=HEALTHY_STEPS, help="healthy steps, from which each scenario goes on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--recompute", choices=("none", "reentrant", "saved"), default="none")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--dropless", action="store_true", help="no capacity; healthy steps only")
    return parser.parse_args()


if __name__ == "__main__":
    main()
