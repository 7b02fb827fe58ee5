"""Trains and evaluates in turn, without a fault: `torchrun --nproc-per-node 4 evaluating.py`.

Rank 2 has the longest part of the validation set, `--evaluation-s` seconds of it; the others wait for it in all_reduce.
"""

import argparse
import os
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

WIDTH = 64
STEP_S = 0.05
TRAINS_FOR = 100
LONGEST = 2


def main() -> None:
    """Joins the job; it never ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--evaluation-s", type=float, default=12.0)
    options = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(hours=1))
    model = torch.nn.Linear(WIDTH, WIDTH)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    while True:
        for _ in range(TRAINS_FOR):
            train_one_step(model, optimizer)
        Path(os.environ["READY_FILE"]).touch()
        evaluate(model, options.evaluation_s * (1.0 if dist.get_rank() == LONGEST else 0.25))


def train_one_step(model: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> None:
    """Forward, backward, communication, update."""
    optimizer.zero_grad()
    torch.autograd.backward(model(torch.randn(4, WIDTH)).square().mean())
    time.sleep(STEP_S)
    assert model.weight.grad is not None
    dist.all_reduce(model.weight.grad)
    optimizer.step()


def evaluate(model: torch.nn.Linear, for_s: float) -> None:
    """Some batches, each of which takes a second, then the mean loss of all ranks."""
    model.eval()
    total, until_s = torch.zeros(1), time.monotonic() + for_s
    with torch.no_grad():
        while time.monotonic() < until_s:
            total += model(torch.randn(4, WIDTH)).square().mean()
            time.sleep(1.0)
    dist.all_reduce(total)
    model.train()


if __name__ == "__main__":
    main()
