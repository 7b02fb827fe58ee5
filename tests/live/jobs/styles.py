"""Trains in the ways that PyTorch offers; in each, rank 2 waits for its input at step 10 and the others wait as that way does.

`torchrun --nproc-per-node 4 styles.py --style ddp`. What the waiting ranks look like from outside differs a lot: some show
frames of torch.distributed, some only autograd, some nothing but a line of this file.
"""
# ruff: noqa: PLC0415 - each style pays only for what it imports

import argparse
import logging
import os
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

CULPRIT = 2
FAULTY_STEP = 10
STEP_COUNT = 1_000_000
WIDTH = 64
TIMEOUT = timedelta(hours=1)

log = logging.getLogger("styles")


class Trainer:
    """What all styles share: a loop, and a batch that does not come."""

    def __init__(self) -> None:
        self.rank = dist.get_rank()
        self.ranks = dist.get_world_size()
        self.step = 0

    def train(self) -> None:
        """The training loop."""
        for step in range(STEP_COUNT):
            self.step = step
            self.train_one_step(self.load_batch())

    def load_batch(self) -> Tensor:
        """Makes the next batch; on rank 2 it waits for one."""
        if self.rank == CULPRIT and self.step == FAULTY_STEP:
            wait_for_input()
        time.sleep(0.05)
        return torch.ones(4, WIDTH)

    def train_one_step(self, batch: Tensor) -> None:
        """The style."""
        raise NotImplementedError


def wait_for_input() -> None:
    """Reads what nobody writes."""
    reader, _writer = os.pipe()
    Path(os.environ["READY_FILE"]).touch()
    os.read(reader, 1)


# --- Wrappers around the model ---


class Ddp(Trainer):
    """DistributedDataParallel: the gradients are averaged inside ``backward``."""

    def __init__(self) -> None:
        super().__init__()
        self.model: torch.nn.Module = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(WIDTH, WIDTH))

    def train_one_step(self, batch: Tensor) -> None:
        """Nothing in it names communication."""
        loss = self.model(batch).square().mean()
        loss.backward()


class DdpBuffers(Ddp):
    """As before, with buffers: they are broadcast at the start of ``forward``."""

    def __init__(self) -> None:
        Trainer.__init__(self)
        model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.BatchNorm1d(WIDTH))
        self.model = torch.nn.parallel.DistributedDataParallel(model)


class Fsdp2(Trainer):
    """``fully_shard``: parameters are gathered in hooks around ``forward`` and ``backward``."""

    def __init__(self) -> None:
        super().__init__()
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (self.ranks,))
        self.model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH))
        for layer in self.model:
            fully_shard(layer, mesh=mesh)
        fully_shard(self.model, mesh=mesh)

    def train_one_step(self, batch: Tensor) -> None:
        """Nothing in it names communication."""
        loss = self.model(batch).square().mean()
        loss.backward()


class DTensors(Trainer):
    """A layer whose weight is a DTensor, sharded over the ranks."""

    def __init__(self) -> None:
        super().__init__()
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Shard, distribute_tensor

        self.mesh = init_device_mesh("cpu", (self.ranks,), mesh_dim_names=("tp",))
        self.weight = distribute_tensor(torch.ones(WIDTH, WIDTH), self.mesh, [Shard(0)])

    def train_one_step(self, batch: Tensor) -> None:
        """Multiplies; the partial sums are added when the whole is asked for."""
        from torch.distributed.tensor import DTensor, Shard, distribute_tensor

        columns = distribute_tensor(batch, self.mesh, [Shard(1)], src_data_rank=None)
        product = columns @ self.weight
        assert isinstance(product, DTensor)
        product.full_tensor()


class Functional(Trainer):
    """Functional collectives, as compiled code uses them."""

    def train_one_step(self, batch: Tensor) -> None:
        """The wait hides in the first use of the result."""
        from torch.distributed import _functional_collectives as functional

        world = dist.group.WORLD
        assert world is not None
        total = functional.all_reduce(batch, "sum", group=world)
        batch.copy_(total / self.ranks)


class Pipeline(Trainer):
    """``torch.distributed.pipelining``: four stages, four micro-batches. Rank 2 stops inside its stage."""

    def __init__(self) -> None:
        super().__init__()
        from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

        stage = PipelineStage(_Layer(self), self.rank, self.ranks, torch.device("cpu"))
        self.schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=lambda output, target: (output - target).square().mean())

    def load_batch(self) -> Tensor:
        """All stages have their input."""
        time.sleep(0.05)
        return torch.ones(16, WIDTH)

    def train_one_step(self, batch: Tensor) -> None:
        """The first stage takes the batch, the last one the target."""
        if self.rank == 0:
            self.schedule.step(batch)
        elif self.rank == self.ranks - 1:
            self.schedule.step(target=batch)
        else:
            self.schedule.step()


class _Layer(torch.nn.Module):
    """Looks something up in a remote table."""

    def __init__(self, trainer: Trainer) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, WIDTH)
        self.trainer = [trainer]

    def forward(self, batch: Tensor) -> Tensor:
        """On rank 2 the table does not answer."""
        if self.trainer[0].rank == CULPRIT and self.trainer[0].step == FAULTY_STEP:
            wait_for_input()
        output: Tensor = self.linear(batch)
        return output


# --- From rank to rank ---


class Ring(Trainer):
    """``isend`` and ``irecv`` around a ring."""

    def train_one_step(self, batch: Tensor) -> None:
        """Waits for both."""
        incoming = torch.empty_like(batch)
        sending = dist.isend(batch, (self.rank + 1) % self.ranks)
        receiving = dist.irecv(incoming, (self.rank - 1) % self.ranks)
        for work in (receiving, sending):
            if work is not None:
                work.wait()


class BatchedRing(Trainer):
    """``batch_isend_irecv`` around a ring."""

    def train_one_step(self, batch: Tensor) -> None:
        """Waits for both."""
        right, left = (self.rank + 1) % self.ranks, (self.rank - 1) % self.ranks
        operations = [dist.P2POp(dist.isend, batch, right), dist.P2POp(dist.irecv, torch.empty_like(batch), left)]
        for work in dist.batch_isend_irecv(operations):
            work.wait()


class Chain(Trainer):
    """``recv`` from the left, ``send`` to the right."""

    def train_one_step(self, batch: Tensor) -> None:
        """As a pipeline by hand does."""
        if self.rank > 0:
            dist.recv(batch, src=self.rank - 1)
        if self.rank < self.ranks - 1:
            dist.send(batch, dst=self.rank + 1)


class ObjectChain(Trainer):
    """``recv_object_list`` from the left, ``send_object_list`` to the right."""

    def train_one_step(self, batch: Tensor) -> None:
        """As schedulers pass shapes."""
        shapes: list[object] = [tuple(batch.shape)]
        if self.rank > 0:
            dist.recv_object_list(shapes, src=self.rank - 1)
        if self.rank < self.ranks - 1:
            dist.send_object_list(shapes, dst=self.rank + 1)


# --- Collectives, one of each ---


class WorkWait(Trainer):
    """``async_op=True`` and ``work.wait()`` later, in a function that issues nothing."""

    def train_one_step(self, batch: Tensor) -> None:
        """Overlaps communication with computation."""
        work = dist.all_reduce(batch, async_op=True)
        time.sleep(0.01)
        self.finish_communication(work)

    def finish_communication(self, work: "dist.Work | None") -> None:
        """Nothing here is a frame of torch."""
        if work is not None:
            work.wait()


class SubgroupWorkWait(WorkWait):
    """As before, in a group of ranks 1, 2 and 3; rank 0 waits in a barrier."""

    def __init__(self) -> None:
        super().__init__()
        self.group = dist.new_group([1, 2, 3], timeout=TIMEOUT, group_desc="experts")

    def train_one_step(self, batch: Tensor) -> None:
        """Experts, then everybody."""
        if self.rank > 0:
            self.finish_communication(dist.all_reduce(batch, group=self.group, async_op=True))
        dist.barrier()


class Barrier(Trainer):
    """``barrier``."""

    def train_one_step(self, batch: Tensor) -> None:
        """Only waits."""
        del batch
        dist.barrier()


class MonitoredBarrier(Trainer):
    """``monitored_barrier``."""

    def train_one_step(self, batch: Tensor) -> None:
        """Only waits, with rank 0 asking everybody."""
        del batch
        dist.monitored_barrier(timeout=TIMEOUT)


class AllToAll(Trainer):
    """``all_to_all_single``, as experts do."""

    def train_one_step(self, batch: Tensor) -> None:
        """Exchanges rows."""
        dist.all_to_all_single(torch.empty_like(batch), batch)


class AllGather(Trainer):
    """``all_gather`` into a list."""

    def train_one_step(self, batch: Tensor) -> None:
        """Gathers."""
        dist.all_gather([torch.empty_like(batch) for _ in range(self.ranks)], batch)


class AllGatherIntoTensor(Trainer):
    """``all_gather_into_tensor``."""

    def train_one_step(self, batch: Tensor) -> None:
        """Gathers."""
        dist.all_gather_into_tensor(torch.empty(4 * self.ranks, WIDTH), batch)


class ReduceScatter(Trainer):
    """``reduce_scatter_tensor``."""

    def train_one_step(self, batch: Tensor) -> None:
        """Reduces."""
        dist.reduce_scatter_tensor(torch.empty(1, WIDTH), batch)


class BroadcastFromCulprit(Trainer):
    """``broadcast`` from the rank that does not come."""

    def train_one_step(self, batch: Tensor) -> None:
        """Waits for the root."""
        dist.broadcast(batch, src=CULPRIT)


class ReduceToCulprit(Trainer):
    """``reduce`` to the rank that does not come, then a barrier."""

    def train_one_step(self, batch: Tensor) -> None:
        """Ranks that only send may go on."""
        dist.reduce(batch, dst=CULPRIT)
        dist.barrier()


class ScatterGather(Trainer):
    """``scatter`` from rank 0 and ``gather`` back."""

    def train_one_step(self, batch: Tensor) -> None:
        """As evaluation does."""
        parts = [batch.clone() for _ in range(self.ranks)] if self.rank == 0 else None
        dist.scatter(batch, parts, src=0)
        dist.gather(batch, parts, dst=0)


class BroadcastObjects(Trainer):
    """``broadcast_object_list`` from the rank that does not come."""

    def train_one_step(self, batch: Tensor) -> None:
        """Waits for the root."""
        del batch
        dist.broadcast_object_list([{"learning rate": 0.1}], src=CULPRIT)


class AllGatherObjects(Trainer):
    """``all_gather_object``."""

    def train_one_step(self, batch: Tensor) -> None:
        """Gathers metrics."""
        del batch
        metrics: list[object] = [None] * self.ranks
        dist.all_gather_object(metrics, {"loss": 0.1})


# --- Before the first step ---


class GroupNever(Trainer):
    """Rank 2 does not come to create a group."""

    def __init__(self) -> None:
        super().__init__()
        dist.barrier()
        if self.rank == CULPRIT:
            wait_for_input()
        self.group = dist.new_group([0, 1, 2], timeout=TIMEOUT, group_desc="late")

    def train_one_step(self, batch: Tensor) -> None:
        """Rank 3 is not in the group, and is the only one to come here."""
        if self.rank < 3:
            dist.all_reduce(batch, group=self.group)
        dist.barrier()


STYLES: dict[str, type[Trainer]] = {
    "ddp": Ddp,
    "ddp-buffers": DdpBuffers,
    "fsdp2": Fsdp2,
    "dtensor": DTensors,
    "functional": Functional,
    "pipeline": Pipeline,
    "isend-irecv": Ring,
    "batch-p2p": BatchedRing,
    "send-recv": Chain,
    "send-recv-objects": ObjectChain,
    "work-wait": WorkWait,
    "work-wait-subgroup": SubgroupWorkWait,
    "barrier": Barrier,
    "monitored-barrier": MonitoredBarrier,
    "all-to-all": AllToAll,
    "all-gather": AllGather,
    "all-gather-tensor": AllGatherIntoTensor,
    "reduce-scatter": ReduceScatter,
    "broadcast": BroadcastFromCulprit,
    "reduce": ReduceToCulprit,
    "scatter-gather": ScatterGather,
    "broadcast-objects": BroadcastObjects,
    "all-gather-objects": AllGatherObjects,
    "group-never": GroupNever,
    "init-never": Barrier,
}


def main() -> None:
    """Joins the job and trains."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--style", choices=STYLES, default="ddp")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [rank{os.environ['RANK']}] %(levelname)s %(message)s")
    if options.style == "init-never" and int(os.environ["RANK"]) == CULPRIT:
        wait_for_input()
    dist.init_process_group("gloo", timeout=TIMEOUT)
    STYLES[options.style]().train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
