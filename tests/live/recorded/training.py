"""The program every rank runs: a tiny training job with tensor and data parallelism and a control group.

Every communication lives in a method of its own, as in real training code, so that a fault can be planted by overriding one
method on one rank, and so that every operation has a call site of its own in the flight recorder.
"""

from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from pardbg.watchdog.demo.processes import WORLD_SIZE

STEP_COUNT = 5
CHECKPOINT_EVERY = 2
TIMEOUT = timedelta(minutes=3)  # so that even a job that lost its launcher ends
WIDTH = 256  # a shard of 256 KiB, more than a pipe holds


class Training:
    """Trains one linear layer on four ranks, laid out as 2 x 2.

    Groups, in the order of their creation: the world; tensor parallel (0 1) (2 3); data parallel (0 2) (1 3); control, which
    is all four ranks again. Build it after ``init_process_group``, on every rank.
    """

    def __init__(self, scratch: Path) -> None:
        self.rank = dist.get_rank()
        self.step = 0
        self.tensor_group = self._enter_one_of(([0, 1], [2, 3]), desc="tp")
        self.data_group = self._enter_one_of(([0, 2], [1, 3]), desc="dp")
        self.control_group = dist.new_group(list(range(WORLD_SIZE)), group_desc="control", timeout=TIMEOUT)
        self._scratch = scratch
        self._generator = torch.Generator().manual_seed(self.rank)
        self.weight = torch.randn(WIDTH, WIDTH, generator=self._generator) / WIDTH
        self.gradient = torch.zeros_like(self.weight)
        self.norms = torch.zeros(WIDTH)
        self.statistics = torch.zeros(8)
        self.loss = torch.zeros(1)

    def run(self) -> None:
        """Trains to the end."""
        self.share_weights()
        self.train()
        self.finish()

    def train(self) -> None:
        """The training loop."""
        for step in range(self.count_steps()):
            self.step = step
            self.train_one_step()
            if self.step % CHECKPOINT_EVERY == 1:
                self.save_checkpoint()

    def count_steps(self) -> int:
        """For how many steps there is data."""
        return STEP_COUNT

    def train_one_step(self) -> None:
        """Forward, backward, communication, update."""
        batch = self.load_batch()
        activations = self.forward(batch)
        self.backward(batch, activations)
        self.average_gradients()
        self.synchronize()
        self.agree_to_continue()
        self.weight -= 0.01 * self.gradient

    def share_weights(self) -> None:
        """Starts every rank from rank 0's weights."""
        dist.broadcast(self.weight, src=0)

    def load_batch(self) -> torch.Tensor:
        """Makes the next batch."""
        return torch.randn(4, WIDTH, generator=self._generator)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Each tensor parallel rank has one half of the layer; the halves are summed."""
        activations = batch @ self.weight
        dist.all_reduce(activations, group=self.tensor_group)
        return activations

    def backward(self, batch: torch.Tensor, activations: torch.Tensor) -> None:
        """Gradient of the mean square of the activations, and what is logged about it."""
        self.gradient = batch.T @ activations / len(batch)
        self.norms = self.gradient.norm(dim=0)
        self.loss = activations.square().mean().reshape(1)

    def average_gradients(self) -> None:
        """Averages over the replicas, as DistributedDataParallel does."""
        dist.all_reduce(self.gradient, group=self.data_group)
        self.gradient /= 2

    def synchronize(self) -> None:
        """Three operations of the whole world that overlap, like gradient buckets."""
        works = [work for work in self.launch_overlapping() if work is not None]
        for work in works:
            work.wait()

    def launch_overlapping(self) -> list[dist.Work | None]:
        """Issues the operations in the order on which all ranks must agree."""
        return [self.average_norms(), self.share_statistics(), self.average_loss()]

    def average_norms(self) -> dist.Work | None:
        """Gradient norms, over the world."""
        work: dist.Work | None = dist.all_reduce(self.norms, async_op=True)
        return work

    def share_statistics(self) -> dist.Work | None:
        """Running statistics, from rank 0."""
        work: dist.Work | None = dist.broadcast(self.statistics, src=0, async_op=True)
        return work

    def average_loss(self) -> dist.Work | None:
        """The loss that rank 0 would log."""
        work: dist.Work | None = dist.all_reduce(self.loss, async_op=True)
        return work

    def agree_to_continue(self) -> None:
        """Any rank may ask all others to stop."""
        stop = torch.zeros(1, dtype=torch.int64)
        dist.all_reduce(stop, group=self.control_group)

    def save_checkpoint(self) -> None:
        """Every rank writes its shard, then waits for the others."""
        with self.shard_path().open("wb") as file:
            torch.save({"weight": self.weight, "step": self.step}, file)
        dist.barrier()

    def shard_path(self) -> Path:
        """Where this rank's shard goes."""
        return self._scratch / f"shard_{self.rank}.pt"

    def finish(self) -> None:
        """The last thing all ranks do together."""
        dist.barrier()

    def _enter_one_of(self, members: tuple[list[int], ...], *, desc: str) -> dist.ProcessGroup:
        """Creates all groups of one axis, as every rank must, and returns the one that holds this rank."""
        groups: list[dist.ProcessGroup] = [dist.new_group(ranks, group_desc=desc, timeout=TIMEOUT) for ranks in members]
        return next(group for group, ranks in zip(groups, members, strict=True) if self.rank in ranks)
