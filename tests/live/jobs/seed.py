"""Trains a mixture of experts on 40 ranks: tp 1, pp 1, ep 8, dp 40, expert-dp 5; rank 37 blocks in its checkpoint.

The job that pardbg was begun for. Twice a layer an all-to-all on the 8 ranks of an expert group; after it, bucket by bucket,
reduce-scatter and all-gather on all 40 ranks for the dense weights and on 5 ranks for the experts'.
"""

import os
from datetime import timedelta
from io import FileIO
from pathlib import Path

import torch
import torch.distributed as dist

CULPRIT = 37
FAULTY_STEP = 4
STEP_COUNT = 1_000_000
EXPERT_PARALLEL = 8
LAYERS = 2
BUCKETS = 2
TOKENS = 16
WIDTH = 256  # a checkpoint of 256 KiB, four times what a pipe holds
TIMEOUT = timedelta(hours=1)


class Trainer:
    """Layers of attention, which all ranks share, and of experts, one a rank of an expert group."""

    def __init__(self) -> None:
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        starts = range(0, self.world_size, EXPERT_PARALLEL)
        self.experts, _ = dist.new_subgroups_by_enumeration(  # type: ignore[no-untyped-call]
            [list(range(start, start + EXPERT_PARALLEL)) for start in starts], group_desc="expert_parallel"
        )
        self.expert_replicas, _ = dist.new_subgroups_by_enumeration(  # type: ignore[no-untyped-call]
            [list(range(first, self.world_size, EXPERT_PARALLEL)) for first in range(EXPERT_PARALLEL)],
            group_desc="expert_data_parallel",
        )
        self.weight = torch.ones(WIDTH, WIDTH) / WIDTH
        self.checkpoint = open_checkpoint()

    def train(self) -> None:
        """The training loop."""
        for step in range(STEP_COUNT):
            for _ in range(LAYERS):
                self.run_experts()
            if step == FAULTY_STEP and self.rank == CULPRIT:
                self.save_checkpoint()
            self.average_gradients(None)
            self.average_gradients(self.expert_replicas)

    def run_experts(self) -> None:
        """Tokens to their experts, and back."""
        tokens = torch.ones(TOKENS * EXPERT_PARALLEL, WIDTH)
        for _ in ("dispatch", "combine"):
            received = torch.empty_like(tokens)
            dist.all_to_all_single(received, tokens, group=self.experts)
            tokens = received

    def average_gradients(self, group: dist.ProcessGroup | None) -> None:
        """Bucket by bucket, as a sharded optimizer does."""
        size = dist.get_world_size(group)
        for _ in range(BUCKETS):
            shard = torch.empty(WIDTH)
            dist.reduce_scatter_tensor(shard, torch.ones(WIDTH * size), group=group)
            dist.all_gather_into_tensor(torch.empty(WIDTH * size), shard, group=group)

    def save_checkpoint(self) -> None:
        """Never comes back: nobody reads."""
        Path(os.environ["READY_FILE"]).touch()
        torch.save({"weight": self.weight}, self.checkpoint)


def open_checkpoint() -> FileIO:
    """A FIFO whose other end is open and is never read."""
    path = Path(f"shard_{dist.get_rank()}.pt")
    os.mkfifo(path)
    return FileIO(os.open(path, os.O_RDWR), "wb")


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=TIMEOUT)
    Trainer().train()
