"""Trains in many ways, one after the other, with DistributedDataParallel on two ranks, and prints what is thought of each.

Each way gets a page of its own, so that its steps count from 0; rank 0 puts the pages of all ranks together, and prints a line
of JSON: of each way how often its replicas were compared, and what was found.
"""

import contextlib
import copy
import io
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import GradBucket
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_post_hook

from pardbg.collectors.parsing.page import parse_page
from pardbg.collectors.probe import harmless
from pardbg.collectors.probe.page import Page
from pardbg.collectors.probe.replica_watch import listen
from pardbg.collectors.probe.replicas.watching import Replicas
from pardbg.collectors.probe.steps import Ledger, Steps
from pardbg.watchdog.graph.replicas import find_replicas

STEPS = 40
WIDTH = 16


class Run:
    """One way to train, on this rank."""

    def __init__(self, path: Path, replicas: Replicas) -> None:
        self.rank = dist.get_rank()
        self.path = path
        page = Page(str(path))
        replicas.start(page, Ledger(), [1])
        self.handle = register_optimizer_step_post_hook(Steps(page, Ledger(), [1]).make_hook(lambda: False))
        self.dice = torch.Generator().manual_seed(100 + self.rank)
        torch.manual_seed(7)

    def more(self, model: Any) -> torch.Tensor:
        """A pass beside that of the step, synchronised, too."""
        loss(model(self.batch())).backward()  # type: ignore[no-untyped-call]
        return self.batch()

    def batch(self) -> torch.Tensor:
        """Other numbers on each rank."""
        return torch.randn(8, WIDTH, generator=self.dice)

    def train(
        self,
        model: Any,
        optimizer: Any = None,
        *,
        steps: int = STEPS,
        draw: Callable[[], Any] | None = None,
        after: Callable[[int], None] = lambda _: None,
        passes: int = 1,
    ) -> None:
        """Plain steps; ``after`` is called after each."""
        optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=0.01)
        for step in range(steps):
            for number in range(passes):
                with contextlib.nullcontext() if number == passes - 1 else model.no_sync():
                    said = (draw or self.batch)()
                    answer = model(**said) if isinstance(said, dict) else model(said)
                    loss(answer).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            optimizer.zero_grad()
            after(step)


def loss(answer: Any) -> torch.Tensor:
    """Any number of what a model answers."""
    answer = getattr(answer, "loss", answer)
    total: torch.Tensor = answer.float().square().mean()
    return total


def net() -> nn.Sequential:
    """A model with buffers."""
    return nn.Sequential(nn.Linear(WIDTH, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, WIDTH), nn.Linear(WIDTH, 4))


def plain(run: Run) -> None:
    run.train(DistributedDataParallel(net()))


def accumulated(run: Run) -> None:
    run.train(DistributedDataParallel(net()), passes=3)


def synchronised_each_pass(run: Run) -> None:
    model = DistributedDataParallel(net())
    run.train(model, draw=lambda: run.more(model))


def zero(run: Run) -> None:
    model = DistributedDataParallel(net())
    run.train(model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01))


def static_graph(run: Run) -> None:
    run.train(DistributedDataParallel(net(), static_graph=True))


class Choosing(nn.Module):
    """Uses one of two layers, now this and now that, on each rank another."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.layers, self.turn = nn.ModuleList([nn.Linear(WIDTH, 4), nn.Linear(WIDTH, 4)]), rank

    def forward(self, batch: torch.Tensor) -> Any:
        """One of them."""
        self.turn += 1
        return self.layers[self.turn % 2](batch)


def unused_parameters(run: Run) -> None:
    run.train(DistributedDataParallel(Choosing(run.rank), find_unused_parameters=True))


def uneven_inputs(run: Run) -> None:
    model = DistributedDataParallel(nn.Sequential(nn.Linear(WIDTH, 4)))
    with Join([model]):
        run.train(model, steps=STEPS - 10 * run.rank)


def compressed(run: Run) -> None:
    model = DistributedDataParallel(net())
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    run.train(model)


def power_sgd(run: Run) -> None:
    model = DistributedDataParallel(net())
    model.register_comm_hook(powerSGD_hook.PowerSGDState(process_group=None), powerSGD_hook.powerSGD_hook)
    run.train(model)


def local_sgd(run: Run) -> None:
    """Each rank for itself, averaged after some steps."""
    model = DistributedDataParallel(net())

    def average(step: int) -> None:
        if step % 10 == 9:
            for parameter in model.parameters():
                dist.all_reduce(parameter.data, op=dist.ReduceOp.AVG if dist.get_backend() == "nccl" else dist.ReduceOp.SUM)
                parameter.data.div_(dist.get_world_size())

    with model.no_sync():
        run.train(model, after=average)


def local_sgd_by_steps(run: Run) -> None:
    """Two steps of three within `no_sync`."""
    model = DistributedDataParallel(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(STEPS):
        with model.no_sync() if step % 3 else contextlib.nullcontext():
            run.train(model, optimizer, steps=1)


def silent_hook(run: Run) -> None:
    """A hook that averages nothing."""
    model = DistributedDataParallel(net())
    model.register_comm_hook(None, _keep)
    run.train(model)


def _keep(_state: object, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def one_rank_looks(run: Run) -> None:
    """One rank runs the model once more, with gradients."""
    model = DistributedDataParallel(nn.Sequential(nn.Linear(WIDTH, 4)))
    run.train(model, after=lambda step: model(run.batch()) if run.rank == 0 and step == 3 else None)


def one_rank_trains_more(run: Run) -> None:
    """One rank has a small model of its own, whose optimizer comes first."""
    if run.rank == 0:
        own = nn.Linear(4, 4)
        run.own = torch.optim.SGD(own.parameters(), lr=0.1)  # type: ignore[attr-defined]
        for _ in range(3):
            own(torch.ones(4)).sum().backward()
            run.own.step()  # type: ignore[attr-defined]
    run.train(DistributedDataParallel(net()))


def frozen_and_ignored(run: Run) -> None:
    """A part takes no gradient, another is each rank's own."""
    inner = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4))
    inner[0].requires_grad_(requires_grad=False)
    inner._ddp_params_and_buffers_to_ignore = ["1.weight", "1.bias"]  # type: ignore[assignment]
    model: Any = DistributedDataParallel(inner)
    with torch.no_grad():
        model.module[1].weight.add_(float(run.rank))
    run.train(model, torch.optim.SGD(inner.parameters(), lr=0.01))


def tied(run: Run) -> None:
    layers = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH))
    layers[1].weight = layers[0].weight
    run.train(DistributedDataParallel(layers))


def half_precision(run: Run) -> None:
    model = DistributedDataParallel(net())
    with torch.autocast("cpu", torch.bfloat16):
        run.train(model)
    run.train(DistributedDataParallel(net().bfloat16(), broadcast_buffers=False), draw=lambda: run.batch().bfloat16())


def ones(run: Run) -> None:
    run.train(DistributedDataParallel(net()), draw=lambda: torch.ones(8, WIDTH))


def growing_ones(run: Run) -> None:
    sizes = iter(range(8, 8 + STEPS))
    run.train(DistributedDataParallel(net()), draw=lambda: torch.ones(next(sizes), WIDTH))


def one_batch(run: Run) -> None:
    batch = torch.randn(8, WIDTH)
    run.train(DistributedDataParallel(net()), draw=lambda: batch)


def few_batches(run: Run) -> None:
    """Each rank draws from the same two."""
    batches = torch.randn(2, 8, WIDTH)
    run.train(DistributedDataParallel(net()), draw=lambda: batches[int(torch.randint(2, (1,), generator=run.dice))])


class Wrapped:
    """A batch in a class of its own."""

    def __init__(self, batch: torch.Tensor) -> None:
        self.batch = batch


class Unwrapping(nn.Module):
    """Takes one, with the number of the step beside it, the same on all ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, 4)

    def forward(self, batch: Wrapped, step: torch.Tensor) -> Any:
        """What the batch holds."""
        return self.layer(batch.batch) * step.mean()


def strange_data(run: Run) -> None:
    steps = iter(range(STEPS))
    draw = lambda: {"batch": Wrapped(run.batch()), "step": torch.arange(64.0) + next(steps)}  # noqa: E731
    run.train(DistributedDataParallel(Unwrapping()), draw=draw)


def copied_and_saved(run: Run) -> None:
    model = DistributedDataParallel(net())
    average = copy.deepcopy(model.module)
    optimizer = torch.optim.AdamW(model.parameters())
    run.train(model, optimizer, steps=10)
    torch.save(model.module, io.BytesIO())
    average(run.batch())
    run.train(model, optimizer, steps=30)


def two_models(run: Run) -> None:
    first, second = DistributedDataParallel(net()), DistributedDataParallel(net())
    other = torch.optim.Adam(second.parameters())

    def train_other(_step: int) -> None:
        loss(second(run.batch())).backward()  # type: ignore[no-untyped-call]
        other.step()
        other.zero_grad()

    run.train(first, after=train_other)


def compiled_around(run: Run) -> None:
    run.train(torch.compile(DistributedDataParallel(nn.Sequential(nn.Linear(WIDTH, 4))), backend="eager"))


def compiled_within(run: Run) -> None:
    run.train(DistributedDataParallel(torch.compile(nn.Sequential(nn.Linear(WIDTH, 4)), backend="eager")))


def evaluated(run: Run) -> None:
    """Between steps all ranks see the same data, without gradients."""
    model: Any = DistributedDataParallel(net())

    @torch.no_grad()
    def evaluate(_step: int) -> None:
        model.eval()
        model(torch.ones(4, WIDTH))
        model.train()

    run.train(model, after=evaluate)


def flipped(run: Run) -> None:
    """A bit of one rank."""
    model = DistributedDataParallel(net())

    def flip(step: int) -> None:
        if step == 5 and run.rank == 1:
            model.module[3].weight.data.view(torch.int32)[0, 0] ^= 1 << 22

    run.train(model, after=flip)


def loaded_otherwise(run: Run) -> None:
    model = DistributedDataParallel(net())
    if run.rank == 1:
        model.module.load_state_dict(net().state_dict())
    run.train(model)


def other_rate(run: Run) -> None:
    model = DistributedDataParallel(net())
    run.train(model, torch.optim.SGD(model.parameters(), lr=0.01 * (1 + run.rank)))


def same_seed(run: Run) -> None:
    run.dice.manual_seed(3)
    run.train(DistributedDataParallel(net()))


def same_tokens(run: Run) -> None:
    """A view of longer rows, in a mapping, beside a mask."""
    run.dice.manual_seed(3)

    def draw() -> dict[str, Any]:
        rows = torch.randint(99, (4, 33), generator=run.dice)
        return {"tokens": {"ids": rows[:, :-1], "mask": torch.ones(4, 32, dtype=torch.bool), "names": ["a"]}}

    class Reading(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(99, WIDTH)

        def forward(self, tokens: dict[str, Any]) -> Any:
            return self.table(tokens["ids"])

    run.train(DistributedDataParallel(Reading()), draw=draw)


WAYS = [
    plain,
    accumulated,
    synchronised_each_pass,
    zero,
    static_graph,
    unused_parameters,
    uneven_inputs,
    compressed,
    power_sgd,
    local_sgd,
    local_sgd_by_steps,
    silent_hook,
    one_rank_looks,
    one_rank_trains_more,
    frozen_and_ignored,
    tied,
    half_precision,
    ones,
    growing_ones,
    one_batch,
    few_batches,
    strange_data,
    copied_and_saved,
    two_models,
    compiled_around,
    compiled_within,
    evaluated,
    flipped,
    loaded_otherwise,
    other_rate,
    same_seed,
    same_tokens,
]


def main(names: list[str]) -> None:
    """All ways, or some."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    replicas = Replicas()
    listen(DistributedDataParallel, replicas.see_pass)
    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for way in WAYS:
            if names and way.__name__ not in names:
                continue
            path = Path(folder) / way.__name__
            run = Run(path, replicas)
            way(run)
            run.handle.remove()
            seen: list[Any] = [None, None]
            dist.all_gather_object(seen, parse_page([path.read_bytes()]).replica)
            told[way.__name__] = judge(dict(enumerate(seen)))
    if dist.get_rank() == 0:
        sys.stdout.write(json.dumps({"told": told, "problems": harmless.problems}) + "\n")
    dist.destroy_process_group()


def judge(seen: dict[int, Any]) -> dict[str, Any]:
    """What is found."""
    for found in find_replicas({rank: replica for rank, replica in seen.items() if replica is not None}):
        parting, alike = found.parting(), list(found.fed_alike())
        return {
            "compared": len(found.moments),
            "with_data": sum(bool(moment.data) for moment in found.moments),
            "parted": [parting.equal_step, parting.since_step] if parting else None,
            "alike": [list(one.ranks) for one in alike],
        }
    return {"compared": 0, "with_data": 0, "parted": None, "alike": []}


if __name__ == "__main__":
    main(sys.argv[1:])
