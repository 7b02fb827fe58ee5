"""Trains, and now and then does something else, without a fault: `torchrun --nproc-per-node 4 pausing.py`; rank 2 is slowest.

It evaluates: rank 2 has the longest part of the validation set; the others wait for it in all_reduce. Or, with `--saves`, it
writes a checkpoint to a slow disk, for which they wait in the barrier.
"""

import argparse
import io
import os
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

WIDTH = 64
STEP_S = 0.05
TRAINS_FOR = 100
SLOW = 2
PIECE_BYTES = 100_000


class SlowFile(io.FileIO):
    """It takes as long as a file on a busy server: 1 MB/s."""

    def write(self, data: object) -> int:
        """In pieces, as they are sent."""
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        for start in range(0, len(view), PIECE_BYTES):
            super().write(view[start : start + PIECE_BYTES])
            os.fsync(self.fileno())
            time.sleep(0.1)
        return len(view)


def main() -> None:
    """Joins the job; it never ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pause-s", type=float, default=12.0)
    parser.add_argument("--saves", action="store_true")
    options = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(hours=1))
    model = torch.nn.Linear(WIDTH, WIDTH)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    share = 1.0 if dist.get_rank() == SLOW else 0.1
    while True:
        for _ in range(TRAINS_FOR):
            train_one_step(model, optimizer)
        Path(os.environ["READY_FILE"]).touch()
        if options.saves:
            save(int(options.pause_s * share * 1e6))
        else:
            evaluate(model, options.pause_s * share)


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


def save(size: int) -> None:
    """Every rank writes its shard, then waits for the others."""
    with SlowFile(f"shard_{dist.get_rank()}.pt", "wb") as file:
        torch.save(torch.zeros(size // 4), file)
    dist.barrier()


if __name__ == "__main__":
    main()
