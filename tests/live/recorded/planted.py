"""The planted faults: one small change to the training program each, on one rank, from one step on."""

import os
import queue
import time
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

import torch
import torch.distributed as dist
from tests.live.recorded.training import WIDTH, Training

from pardbg.watchdog.demo.processes import WORLD_SIZE

FAULTY_STEP = 3
LATE_S = 1.0  # ten times what the black box needs to notice, less than it takes for stillness


class Planted(Training):
    """Training with a rank that misbehaves."""

    faulty_rank = 2

    @property
    def is_faulty(self) -> bool:
        """Whether this rank misbehaves in this step."""
        return self.rank == self.faulty_rank and self.step == FAULTY_STEP


class SkipsOperation(Planted):
    """No gradient on this rank, so nothing to average - and everything that follows comes one too early."""

    def average_norms(self) -> dist.Work | None:
        """Skips."""
        return None if self.is_faulty else super().average_norms()


class AddsOperation(Planted):
    """Calls once more than the others."""

    def launch_overlapping(self) -> list[dist.Work | None]:
        """Broadcasts the statistics before everything else, too."""
        extra = [self.share_statistics()] if self.is_faulty else []
        return extra + super().launch_overlapping()


class SwapsOperations(Planted):
    """Calls the same operations in another order."""

    def launch_overlapping(self) -> list[dist.Work | None]:
        """Statistics before norms."""
        if not self.is_faulty:
            return super().launch_overlapping()
        return [self.share_statistics(), self.average_norms(), self.average_loss()]


class CallsOtherOperation(Planted):
    """A branch on this rank calls another collective."""

    def average_norms(self) -> dist.Work | None:
        """Takes rank 0's norms where the others average."""
        if self.is_faulty:
            work: dist.Work | None = dist.broadcast(self.norms, src=0, async_op=True)
            return work
        return super().average_norms()


class SendsOtherSize(Planted):
    """The right operation with a tensor of another size.

    gloo has no error for it: the rank whose buffer is too small for what arrives aborts. So this rank comes first, and its
    flight recorder shows the operation before the others send.
    """

    def synchronize(self) -> None:
        """The others are a little late."""
        if self.step == FAULTY_STEP and not self.is_faulty:
            time.sleep(LATE_S)
        super().synchronize()

    def average_norms(self) -> dist.Work | None:
        """Has lost half of the norms."""
        if self.is_faulty:
            self.norms = self.norms[: WIDTH // 2]
        return super().average_norms()


class SwapsGroups(Planted):
    """Asks the control group first, the world second; the others the other way round."""

    def synchronize(self) -> None:
        """The control group's turn would come later."""
        if self.is_faulty:
            self.agree_to_continue()
        super().synchronize()


class LeavesLoop(Planted):
    """Has less data than the others, leaves the loop and goes on with something else."""

    def count_steps(self) -> int:
        """Ends before the others."""
        return FAULTY_STEP if self.rank == self.faulty_rank else super().count_steps()

    def finish(self) -> None:
        """Waits, for somebody to fetch the results."""
        if self.rank != self.faulty_rank:
            super().finish()
        else:
            time.sleep(3600)


class Exits(LeavesLoop):
    """Has less data than the others, and ends."""

    def finish(self) -> None:
        """Nothing left to do."""
        if self.rank != self.faulty_rank:
            super().finish()


class StopsInCheckpoint(Planted):
    """Its checkpoint goes to a named pipe that is open for reading and never read."""

    def shard_path(self) -> Path:
        """Makes the pipe. Without the reader, opening it would block already, and not in ``torch.save``."""
        path = super().shard_path()
        if self.is_faulty:
            path = path.with_suffix(".pipe")
            os.mkfifo(path)
            os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        return path


class NeverSends(Planted):
    """Point-to-point in every step: ranks 2 and 3 send their statistics to ranks 0 and 1. Forgets its send in one."""

    faulty_rank = 3

    def average_gradients(self) -> None:
        """Exchanges statistics, too. gloo records neither send nor recv."""
        super().average_gradients()
        if self.rank < WORLD_SIZE // 2:
            dist.recv(self.statistics, src=self.rank + 2)
        elif not self.is_faulty:
            dist.send(self.statistics, dst=self.rank - 2)


class NeverJoinsGroup(Planted):
    """Waits for its first batch, so that its groups never see it."""

    faulty_rank = 3

    @property
    def is_faulty(self) -> bool:
        """From the very first step."""
        return self.rank == self.faulty_rank

    def load_batch(self) -> torch.Tensor:
        """Waits for a loader that never delivers."""
        if not self.is_faulty:
            return super().load_batch()
        batches: queue.Queue[torch.Tensor] = queue.Queue()
        return batches.get()


PROGRAMS: MappingProxyType[str, Callable[[Path], Training]] = MappingProxyType(
    {
        "healthy": Training,
        "stops-joining": StopsInCheckpoint,
        "skipped": SkipsOperation,
        "extra": AddsOperation,
        "swapped": SwapsOperations,
        "other-op": CallsOtherOperation,
        "other-size": SendsOtherSize,
        "order": SwapsGroups,
        "left-early": LeavesLoop,
        "left-early-exit": Exits,
        "p2p": NeverSends,
        "subgroup-missing": NeverJoinsGroup,
    }
)
