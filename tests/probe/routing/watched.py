"""A probe's view of the routers of this test, without a rank around it, and the plain way to know the same."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch._dynamo.callback import callback_handler

from pardbg.collectors.parsing.routing_page import parse_routing_page
from pardbg.collectors.probe import harmless
from pardbg.collectors.probe.routing import reporting
from pardbg.collectors.probe.routing.watching import Routers
from pardbg.collectors.probe.steps import Ledger
from pardbg.watchdog.model.routing import RoutingRow, RoutingSeries


class Watched:
    """Routers that are open, and their file."""

    def __init__(self, folder: Path, here: list[int]) -> None:
        self.path = folder / "routing"
        self.here = here
        self.ledger = Ledger()
        self.routers = Routers()
        self.step = 0

    def open(self) -> None:
        """Counts from now on."""
        self.routers.start(str(self.path), self.ledger, self.here)

    def end_step(self, *optimizers: Any) -> None:
        """What the hook of optimizers does, of which the last is the one that counts."""
        for optimizer in optimizers:
            self.routers.note_step(optimizer)
        self.step += 1
        self.routers.end_step(self.step, self.step)

    def read(self, after_step: int = -1) -> RoutingSeries:
        """What another process would read."""
        return parse_routing_page(self.path.read_bytes(), after_step=after_step)

    def last(self) -> list[RoutingRow]:
        """The rows of the last step, by layer."""
        rows = self.read().rows
        return [row for row in rows if row.step == self.step]


@contextmanager
def watching() -> Iterator[Watched]:
    """Watches models that are made from now on. At the end nothing may have failed within the probe."""
    folder = Path(tempfile.mkdtemp(prefix="routing-", dir="/tmp"))
    watched = Watched(folder, [1])
    import_module("tqdm").tqdm.monitor_interval = 0  # compilers show progress: its thread would stay for all later tests
    harmless.problems.clear()
    handle = nn.modules.module.register_module_module_registration_hook(watched.routers.make_hook())
    prepare = callback_handler.register_start_callback(lambda *_: watched.routers.prepare())
    watched.open()
    reporting.routers[:] = [watched.routers]
    try:
        yield watched
        assert harmless.problems == [], harmless.problems
    finally:
        handle.remove()
        if prepare in callback_handler.start_callbacks:
            callback_handler.remove_start_callback(prepare)
        reporting.routers.clear()
        watched.routers.close()
        shutil.rmtree(folder)


def count_plainly(ids: Iterable[torch.Tensor], experts: int) -> tuple[int, ...]:
    """How often each expert was chosen, one number after the other."""
    seen: Counter[int] = Counter()
    for part in ids:
        seen.update(int(number) for number in part.reshape(-1).tolist())
    return tuple(seen[expert] for expert in range(experts))


def gather_ids(model: nn.Module, run: Callable[[], Any], names: Sequence[str]) -> list[list[torch.Tensor]]:
    """What the routers of these names answer in one run of the model: the third part, in transformers 5."""
    said: list[list[torch.Tensor]] = [[] for _ in names]
    parts = dict(model.named_modules())
    handles = [
        parts[name].register_forward_hook(lambda _module, _args, answer, into=into: into.append(answer[2].clone()))
        for name, into in zip(names, said, strict=True)
    ]
    run()
    for handle in handles:
        handle.remove()
    return said
