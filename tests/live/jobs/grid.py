"""Trains on 8 ranks in a grid: pipeline x data x tensor parallel, 2 x 2 x 2; rank 5 blocks in its checkpoint.

`torchrun --nproc-per-node 8 grid.py --fault checkpoint`. Global rank = 4 pp + 2 dp + tp. No operation has all 8 ranks: the hang
of rank 5 (pp 1, dp 0, tp 1) spreads along the axes, and every other rank waits for a neighbour.
"""

import argparse
import logging
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

CULPRIT = 5
FAULTY_STEP = 10
STEP_COUNT = 1_000_000
WIDTH = 256  # a checkpoint of 256 KiB, four times what a pipe holds
TIMEOUT = timedelta(hours=1)

log = logging.getLogger("grid")


class Trainer:
    """Two stages of one tensor-parallel layer each, replicated twice."""

    def __init__(self, fault: str) -> None:
        self.rank = dist.get_rank()
        self.fault = fault
        self.step = 0
        mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("pp", "dp", "tp"))
        coordinates = mesh.get_coordinate()
        assert coordinates is not None
        self.stage, self.replica, _ = coordinates
        self.pipe, self.data, self.tensor = (mesh.get_group(axis) for axis in ("pp", "dp", "tp"))
        self.peer = (self.rank + 4) % 8
        self.weight = torch.ones(WIDTH, WIDTH) / WIDTH
        self.activations = torch.ones(4, WIDTH)

    def train(self) -> None:
        """The training loop."""
        for step in range(STEP_COUNT):
            self.step = step
            self.train_one_step()
            if step % 5 == 0:
                self.save_checkpoint()

    def train_one_step(self) -> None:
        """Forward through both stages, backward through both, then the replicas agree."""
        self.forward()
        self.backward()
        self.average_gradients()

    def forward(self) -> None:
        """Stage 0 feeds stage 1."""
        if self.stage == 1:
            dist.recv(self.activations, src=self.peer, group=self.pipe)
        self.run_layer()
        if self.stage == 0:
            dist.send(self.activations, dst=self.peer, group=self.pipe)

    def run_layer(self) -> None:
        """Each tensor parallel rank has one half of the layer; the halves are summed."""
        self.activations = self.activations @ self.weight / 2
        time.sleep(0.02)
        dist.all_reduce(self.activations, group=self.tensor)

    def backward(self) -> None:
        """Stage 1 feeds stage 0."""
        gradient = torch.ones(4, WIDTH)
        if self.stage == 0:
            dist.recv(gradient, src=self.peer, group=self.pipe)
        time.sleep(0.02)
        dist.all_reduce(gradient, group=self.tensor)
        if self.stage == 1:
            dist.send(gradient, dst=self.peer, group=self.pipe)

    def average_gradients(self) -> None:
        """Over the replicas."""
        dist.all_reduce(self.weight, group=self.data)
        self.weight /= 2

    def save_checkpoint(self) -> None:
        """The first replica saves; nobody waits for it here."""
        if self.replica == 0:
            with self.open_shard() as file:
                torch.save({"weight": self.weight, "step": self.step}, file)
        if self.fault == "none" and self.rank == CULPRIT and self.step == FAULTY_STEP:
            announce()

    def open_shard(self) -> BinaryIO:
        """Where this rank's shard goes. Rank 5's server takes no more, and says nothing."""
        path = f"shard_{self.rank}.pt"
        if self.fault == "checkpoint" and self.rank == CULPRIT and self.step == FAULTY_STEP:
            path = "shard_stuck.pt"
            os.mkfifo(path)
            os.open(path, os.O_RDWR | os.O_NONBLOCK)
            announce()
        return open(path, "wb")  # noqa: PTH123


def announce() -> None:
    """Tells the test that the fault comes now."""
    Path(os.environ["READY_FILE"]).touch()


def main() -> None:
    """Joins the job and trains."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", choices=("none", "checkpoint"), default="none")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [rank{os.environ['RANK']}] %(levelname)s %(message)s")
    dist.init_process_group("gloo", timeout=TIMEOUT)
    Trainer(options.fault).train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
