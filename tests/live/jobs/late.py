"""A job that never stops, and in which ranks come late: one always, one after another, all by chance, or all alike.

Steps are counted by an optimizer, as in training. ``--lateness``: ``always`` (rank 2, 0.4 s each step), ``in-turn`` (another
rank each step), ``jitter`` (10 % of the step, all ranks), ``everyone`` (0.4 s each). ``--how``: what the late rank does.
"""

import argparse
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

LATE_RANK = 2
LATE_S = 0.4
STEP_S = 0.1


class Samples(Dataset[int]):
    """Each item takes as long as it is told to."""

    def __init__(self, seconds: list[float]) -> None:
        self._seconds = seconds

    def __len__(self) -> int:
        return len(self._seconds)

    def __getitem__(self, index: int) -> int:
        time.sleep(self._seconds[index])
        return index


def compute(seconds: float) -> None:
    """Burns processor time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


def main() -> None:
    """Trains until it is ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lateness", required=True)
    parser.add_argument("--how", default="loader")
    chosen = parser.parse_args()
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    chance = random.Random(rank)
    lateness: dict[str, Callable[[int], float]] = {
        "always": lambda _: LATE_S if rank == LATE_RANK else 0.0,
        "in-turn": lambda step: LATE_S if step % size == rank else 0.0,
        "jitter": lambda _: max(0.0, chance.gauss(0, 0.1 * STEP_S)),
        "everyone": lambda _: LATE_S,
    }
    seconds = [lateness[chosen.lateness](step) for step in range(5000)]
    loader = iter(DataLoader(Samples(seconds), batch_size=1))
    for step in range(len(seconds)):
        next(loader) if chosen.how == "loader" else compute(seconds[step])
        time.sleep(STEP_S)
        optimizer.zero_grad()
        model(torch.randn(4, 8)).sum().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        if step == 20 and rank == 0:
            Path(os.environ["READY_FILE"]).touch()


if __name__ == "__main__":
    main()
