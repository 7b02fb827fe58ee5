"""Communicates in several groups and from rank to rank; with `--fault`, the ranks do not agree on what comes next.

`torchrun --nproc-per-node 4 orders.py --fault skips`. As in `train.py`, the fault comes at step 10, and all ranks run the same
code.
"""

import argparse
import logging
import os
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

CULPRIT = 2
FAULTY_STEP = 10
STEP_COUNT = 1_000_000
WIDTH = 256
TIMEOUT = timedelta(hours=1)

log = logging.getLogger("orders")


class Trainer:
    """Trains without a fault."""

    culprit = CULPRIT

    def __init__(self) -> None:
        self.rank = dist.get_rank()
        self.step = 0
        self.weight = torch.ones(WIDTH, WIDTH)
        self.norms = torch.ones(WIDTH)
        self.statistics = torch.ones(8)
        self.stop = torch.zeros(1)

    @property
    def is_faulty(self) -> bool:
        """Whether this is the rank and the step."""
        return self.rank == self.culprit and self.step == FAULTY_STEP

    def train(self) -> None:
        """The training loop."""
        for step in range(STEP_COUNT):
            self.step = step
            self.train_one_step()

    def train_one_step(self) -> None:
        """Computes, then agrees with the others."""
        self.compute()
        self.average_norms()
        self.share_statistics()
        self.agree_to_continue()

    def compute(self) -> None:
        """Forward and backward; the sleep stands for the device."""
        self.norms = (self.weight @ self.weight).norm(dim=0) / WIDTH
        time.sleep(0.05)

    def average_norms(self) -> None:
        """Over all ranks."""
        dist.all_reduce(self.norms)

    def share_statistics(self) -> None:
        """From rank 0."""
        dist.broadcast(self.statistics, src=0)

    def agree_to_continue(self) -> None:
        """Any rank may ask all others to stop."""
        dist.all_reduce(self.stop)


def announce() -> None:
    """Tells the test that the fault comes now."""
    Path(os.environ["READY_FILE"]).touch()


class Healthy(Trainer):
    """Tells the test that it has come this far."""

    def compute(self) -> None:
        """Says so once."""
        if self.is_faulty:
            announce()
        super().compute()


class Skips(Trainer):
    """Leaves a collective out where its gradient is not finite, and goes on with the next one."""

    def average_norms(self) -> None:
        """Unless there is nothing to average."""
        if self.is_faulty:
            self.norms.fill_(torch.nan)
        if not torch.isfinite(self.norms).all():
            log.warning("rank %d: gradient is not finite at step %d, skipped", self.rank, self.step)
            announce()
            return
        super().average_norms()


class Adds(Trainer):
    """Calls a collective that the others do not call."""

    def average_norms(self) -> None:
        """Asks for fresh statistics first, where its own are old."""
        if self.is_faulty:
            announce()
            dist.broadcast(self.statistics, src=0)
        super().average_norms()


class CallsOther(Trainer):
    """Calls another collective than the others, in the same place."""

    def average_norms(self) -> None:
        """Gathers instead of averaging, in one branch."""
        if self.is_faulty:
            announce()
            parts = [torch.empty_like(self.norms) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, self.norms)
            self.norms = torch.stack(parts).mean(dim=0)
        else:
            super().average_norms()


class SwapsGroups(Trainer):
    """Two groups of all ranks: rank 2 enters the control group first, the others the world."""

    def __init__(self) -> None:
        super().__init__()
        self.control_group = dist.new_group(timeout=TIMEOUT, group_desc="control")

    def train_one_step(self) -> None:
        """Looks whether to stop before it averages, or after."""
        self.compute()
        if self.is_faulty:
            announce()
            self.agree_to_continue()
            self.average_norms()
        else:
            self.average_norms()
            self.agree_to_continue()

    def agree_to_continue(self) -> None:
        """In the control group."""
        dist.all_reduce(self.stop, group=self.control_group)


class SwapsTwoGroups(Trainer):
    """Two groups that share ranks 1 and 2, which enter them in opposite orders: nobody can say who is wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.tensor_group = dist.new_group([0, 1, 2], timeout=TIMEOUT, group_desc="tp")
        self.data_group = dist.new_group([1, 2, 3], timeout=TIMEOUT, group_desc="dp")

    def train_one_step(self) -> None:
        """Averages over both groups."""
        self.compute()
        self.share_statistics()
        if self.is_faulty:
            announce()
            self.average_data()
            self.average_tensor()
        else:
            self.average_tensor()
            self.average_data()

    def average_tensor(self) -> None:
        """Over the tensor parallel group."""
        if self.rank in {0, 1, 2}:
            dist.all_reduce(self.norms, group=self.tensor_group)

    def average_data(self) -> None:
        """Over the data parallel group."""
        if self.rank in {1, 2, 3}:
            dist.all_reduce(self.norms, group=self.data_group)


class ReceivesFirst(Trainer):
    """Ranks 1 and 2 exchange their borders; from one step on both receive first."""

    def train_one_step(self) -> None:
        """Exchanges between the computation and the collectives."""
        self.compute()
        self.exchange_borders()
        self.average_norms()

    def exchange_borders(self) -> None:
        """The lower rank sends first - until a change of the schedule."""
        if self.rank not in {1, 2}:
            return
        peer = 3 - self.rank
        border = torch.empty_like(self.statistics)
        if self.step >= FAULTY_STEP:
            announce()
            dist.recv(border, src=peer)
            dist.send(self.statistics, dst=peer)
        elif self.rank == 1:
            dist.send(self.statistics, dst=peer)
            dist.recv(border, src=peer)
        else:
            dist.recv(border, src=peer)
            dist.send(self.statistics, dst=peer)


class SendsFirst(ReceivesFirst):
    """Both send first: gloo has no buffer for it either."""

    def exchange_borders(self) -> None:
        """Sends what is too large for any buffer."""
        if self.step < FAULTY_STEP or self.rank not in {1, 2}:
            super().exchange_borders()
            return
        announce()
        dist.send(self.weight, dst=3 - self.rank)
        dist.recv(torch.empty_like(self.weight), src=3 - self.rank)


class ForgetsToSend(Trainer):
    """Ranks 2 and 3 send to 0 and 1 in each step; rank 3 leaves one out and goes on to the next collective."""

    culprit = 3

    def average_norms(self) -> None:
        """Passes the activations on first."""
        if self.rank < 2:
            dist.recv(torch.empty_like(self.statistics), src=self.rank + 2)
        else:
            self.send_activations()
        super().average_norms()

    def send_activations(self) -> None:
        """Nothing to send in one step."""
        if self.is_faulty:
            announce()
            return
        dist.send(self.statistics, dst=self.rank - 2)


class StopsBeforeSending(ForgetsToSend):
    """Rank 3 waits for its input and does not come to send."""

    def send_activations(self) -> None:
        """Reads something first."""
        if self.is_faulty:
            reader, _writer = os.pipe()
            announce()
            os.read(reader, 1)
        super().send_activations()


FAULTS: dict[str, type[Trainer]] = {
    "none": Healthy,
    "skips": Skips,
    "adds": Adds,
    "other-op": CallsOther,
    "opposite-order": SwapsGroups,
    "opposite-order-pair": SwapsTwoGroups,
    "both-receive-first": ReceivesFirst,
    "both-send-first": SendsFirst,
    "never-sends": ForgetsToSend,
    "never-sends-host": StopsBeforeSending,
}


def main() -> None:
    """Joins the job and trains."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", choices=FAULTS, default="none")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [rank{os.environ['RANK']}] %(levelname)s %(message)s")
    dist.init_process_group("gloo", timeout=TIMEOUT)
    FAULTS[options.fault]().train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
