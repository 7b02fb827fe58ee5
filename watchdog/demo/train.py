"""A small training job in which one rank goes wrong: `torchrun --nproc-per-node 4 train.py lock FILE`.

`pardbg demo` copies this file next to its report and starts the copy, as it would start anybody's program: it knows nothing of
pardbg and prepares nothing. Four ranks train one layer, laid out as 2 x 2. Every communication is a method of its own, as in
real training code, so that a fault is planted by overriding one method, which does something else on one rank in one step.
"""

import argparse
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

STEP_COUNT = 2400  # two minutes
STEP_S = 0.05
FAULTY_STEP = 20
CHECKPOINT_EVERY = 5
WIDTH = 256  # a shard of 256 KiB, four times what a pipe holds


class Training:
    """Trains without a fault, in the world, tensor parallel and data parallel groups, and a control group of all ranks."""

    faulty_rank = 2

    def __init__(self, sign: Path) -> None:
        self.rank = dist.get_rank()
        self.step = 0
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        self.tensor_group, self.data_group = mesh.get_group("tp"), mesh.get_group("dp")
        self.control_group = dist.new_group(group_desc="control")
        self._sign = sign
        self._generator = torch.Generator().manual_seed(self.rank)
        self.weight = torch.randn(WIDTH, WIDTH, generator=self._generator) / WIDTH
        self.gradient = torch.zeros_like(self.weight)
        self.loss = torch.zeros(1)

    @property
    def is_faulty(self) -> bool:
        """Whether this rank misbehaves in this step."""
        return self.rank == self.faulty_rank and self.step == FAULTY_STEP

    def announce(self) -> None:
        """Tells the demo that the fault comes now, so that it knows when to scan. No real job does that."""
        self._sign.touch()

    def run(self) -> None:
        """Trains to the end."""
        self.train()
        self.finish()

    def train(self) -> None:
        """The training loop."""
        for step in range(self.count_steps()):
            self.step = step
            self.train_one_step()
            if step % CHECKPOINT_EVERY == 0:
                self.save_checkpoint()

    def count_steps(self) -> int:
        """For how many steps there is data."""
        return STEP_COUNT

    def train_one_step(self) -> None:
        """Forward, backward, communication, update."""
        self.compute(self.load_batch())
        self.average_gradients()
        self.agree()
        self.weight -= 0.01 * self.gradient

    def load_batch(self) -> torch.Tensor:
        """Makes the next batch."""
        return torch.randn(4, WIDTH, generator=self._generator)

    def compute(self, batch: torch.Tensor) -> None:
        """Each tensor parallel rank has one half of the layer; the halves are summed. The pause stands for a device."""
        time.sleep(STEP_S)
        activations = batch @ self.weight
        dist.all_reduce(activations, group=self.tensor_group)
        self.gradient = batch.T @ activations / len(batch)
        self.loss = activations.square().mean().reshape(1)

    def average_gradients(self) -> None:
        """Averages over the replicas, as DistributedDataParallel does."""
        dist.all_reduce(self.gradient, group=self.data_group)
        self.gradient /= 2

    def agree(self) -> None:
        """What all ranks do together in every step."""
        self.average_loss()
        self.agree_to_continue()

    def average_loss(self) -> None:
        """The loss that rank 0 would log."""
        dist.all_reduce(self.loss)

    def agree_to_continue(self) -> None:
        """Any rank may ask all others to stop."""
        stop = torch.zeros(1, dtype=torch.int64)
        dist.all_reduce(stop, group=self.control_group)

    def save_checkpoint(self) -> None:
        """Every rank writes its shard, then waits for the others."""
        with self.open_shard() as file:
            torch.save({"weight": self.weight, "step": self.step}, file)
        dist.barrier()

    def open_shard(self) -> BinaryIO:
        """Where this rank's shard goes."""
        return Path(f"shard_{self.rank}.pt").open("wb")

    def finish(self) -> None:
        """The last thing all ranks do together."""
        dist.barrier()


class Healthy(Training):
    """Says when it has come as far as the others before they fail."""

    def load_batch(self) -> torch.Tensor:
        """Goes on."""
        if self.is_faulty:
            self.announce()
        return super().load_batch()


class StopsJoining(Training):
    """Its checkpoint goes to a pipe that is open for reading and never read, as to a file server that has died."""

    def open_shard(self) -> BinaryIO:
        """Without the reader, opening the pipe would block already, and not ``torch.save``."""
        if not self.is_faulty:
            return super().open_shard()
        path = Path(f"shard_{self.rank}.pipe")
        os.mkfifo(path)
        os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.announce()
        return path.open("wb")


class LeavesLoop(Training):
    """Has less data than the others, leaves the loop, and waits for somebody to fetch the results."""

    def count_steps(self) -> int:
        """Ends before the others."""
        return FAULTY_STEP if self.rank == self.faulty_rank else super().count_steps()

    def finish(self) -> None:
        """Does not come to the end that all have in common."""
        if self.rank == self.faulty_rank:
            self.announce()
            time.sleep(3600)
        super().finish()


class SwapsGroups(Training):
    """Asks the control group first, the world second; the others the other way round."""

    def agree(self) -> None:
        """The control group's turn would come later."""
        if self.is_faulty:
            self.announce()
            self.agree_to_continue()
        super().agree()


class CallsOtherOperation(Training):
    """A branch on this rank calls another collective."""

    def average_loss(self) -> None:
        """Takes rank 0's loss where the others average."""
        if not self.is_faulty:
            super().average_loss()
            return
        self.announce()
        dist.broadcast(self.loss, src=0)


class NeverSends(Training):
    """Ranks 2 and 3 send to ranks 0 and 1 in every step; rank 3 forgets it in one."""

    faulty_rank = 3

    def average_gradients(self) -> None:
        """Sends the loss along the pipeline, too."""
        super().average_gradients()
        if self.is_faulty:
            self.announce()
        elif self.rank in {0, 1}:
            dist.recv(self.loss, src=self.rank + 2)
        else:
            dist.send(self.loss, dst=self.rank - 2)


class Batches(torch.utils.data.Dataset[torch.Tensor]):
    """Batches that a loader worker makes; in one of them it reads from a pipe to which nobody writes."""

    def __init__(self, training: Training) -> None:
        self._training = training

    def __len__(self) -> int:
        """As many as there are steps."""
        return STEP_COUNT

    def __getitem__(self, index: int) -> torch.Tensor:
        """Makes one. Runs in the worker."""
        if self._training.rank == self._training.faulty_rank and index == FAULTY_STEP:
            reader, _writer = os.pipe()
            self._training.announce()
            os.read(reader, 1)
        return torch.full((4, WIDTH), float(index % 7))


class Loads(Training):
    """A worker of its data loader never delivers."""

    def __init__(self, sign: Path) -> None:
        super().__init__(sign)
        loader = torch.utils.data.DataLoader(Batches(self), batch_size=None, num_workers=1)
        self.batches: Iterator[torch.Tensor] = iter(loader)

    def load_batch(self) -> torch.Tensor:
        """Takes the next batch from the worker."""
        return next(self.batches)


class Locks(Training):
    """Takes a lock that it already has."""

    def load_batch(self) -> torch.Tensor:
        """Takes the cache's lock twice."""
        cache_lock = threading.Lock()
        with cache_lock:
            if self.is_faulty:
                self.announce()
                cache_lock.acquire()
            return super().load_batch()


class Stops(Training):
    """Is stopped by a signal, as by a job control that forgot it."""

    def load_batch(self) -> torch.Tensor:
        """Stops itself, which saves the demo from aiming."""
        if self.is_faulty:
            self.announce()
            os.kill(os.getpid(), signal.SIGSTOP)
        return super().load_batch()


PROGRAMS: dict[str, type[Training]] = {
    "stops-joining": StopsJoining,
    "left-early": LeavesLoop,
    "order": SwapsGroups,
    "other-op": CallsOtherOperation,
    "p2p": NeverSends,
    "loader": Loads,
    "lock": Locks,
    "stopped": Stops,
    "healthy": Healthy,
}


def main() -> None:
    """Joins the job and trains."""
    parser = argparse.ArgumentParser()
    parser.add_argument("fault", choices=PROGRAMS)
    parser.add_argument("sign", type=Path, help="a file to touch when the fault comes")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    PROGRAMS[options.fault](options.sign).run()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
