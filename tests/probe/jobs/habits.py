"""What training programs do beside training, in a world of one: each function prints what must not depend on a probe.

The arguments name the functions; none means those that are quick.
"""

# ruff: noqa: T201 - what it prints is compared
# mypy: disable-error-code="attr-defined,no-any-return,no-untyped-call"

import copy
import functools
import hashlib
import inspect
import io
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import checkpoint
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset[Any]):
    """Eight numbers; ``fatal``: getting it ends the worker by SIGTERM."""

    def __init__(self, fatal: int = -1) -> None:
        self.fatal = fatal

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> int:
        if index == self.fatal:
            os.kill(os.getpid(), signal.SIGTERM)
        return index * index


def names() -> None:
    """Functions that a probe might replace are found by pickle, and look the same."""
    for function in (torch.save, torch.nn.Module.eval, sys.exit, os._exit, checkpoint.save):
        found = pickle.loads(pickle.dumps(function))
        print(function.__name__, found is function, inspect.signature(function), function.__doc__ == found.__doc__)
    print(inspect.getsource(torch.nn.Module.eval).splitlines()[0])
    print(pickle.loads(pickle.dumps(functools.partial(torch.save, f=os.devnull))).keywords)


def model_and_optimizer() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """The same at each call."""
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
    return model, torch.optim.Adam(model.parameters(), lr=0.01)


def digest(model: torch.nn.Module) -> str:
    """Of the weights, in few letters."""
    values = [value.detach().numpy().tobytes() for value in model.state_dict().values()]
    return hashlib.sha256(b"".join(values)).hexdigest()[:16]


def copies() -> None:
    """Models and optimizers are copied, pickled whole, and scripted."""
    model, optimizer = model_and_optimizer()
    model(torch.ones(4)).sum().backward()
    optimizer.step()
    print(digest(copy.deepcopy(model)), digest(pickle.loads(pickle.dumps(model))))
    again = pickle.loads(pickle.dumps(optimizer))
    again.step()
    buffer = io.BytesIO()
    torch.save(model, buffer)
    torch.save(optimizer.state_dict(), buffer)
    print(hashlib.sha256(buffer.getvalue()).hexdigest(), torch.fx.symbolic_trace(model).code)
    scripted = torch.jit.trace(model.eval(), torch.ones(4))
    print(scripted.eval()(torch.ones(4)).item(), scripted.training)


def compiled(backend: str = "eager") -> None:
    """Training steps, changes of mode, and group ranks are compiled, in as many pieces as ever."""
    model, optimizer = model_and_optimizer()

    @torch.compile(fullgraph=True, backend=backend)
    def train(batch: torch.Tensor) -> torch.Tensor:
        return model(batch).square().sum()

    @torch.compile(backend=backend)  # torch itself breaks it
    def step() -> None:
        optimizer.step()

    @torch.compile(fullgraph=True, backend=backend)
    def evaluate(batch: torch.Tensor) -> torch.Tensor:
        model.eval()
        return model(batch) * dist.get_process_group_ranks(dist.group.WORLD)[0] + dist.get_rank()

    for _ in range(3):
        train(torch.ones(4)).backward()
        step()
        optimizer.zero_grad()
    print(digest(model), evaluate(torch.ones(4)).item(), model.training)
    found = torch._dynamo.utils.counters
    print(dict(found["stats"]), sum(found["graph_break"].values()))


def compiled_by_inductor() -> None:
    """The same with the compiler that people use."""
    compiled("inductor")


def checkpoints() -> None:
    """Torch's distributed checkpoints, and plain ones from several threads at once."""
    model, _ = model_and_optimizer()
    with tempfile.TemporaryDirectory() as folder:
        checkpoint.save({"model": model.state_dict()}, checkpoint_id=folder)
        loaded = {"model": {name: torch.zeros_like(value) for name, value in model.state_dict().items()}}
        checkpoint.load(loaded, checkpoint_id=folder)
        print(sum(value.sum().item() for value in loaded["model"].values()))
    buffers = [io.BytesIO() for _ in range(8)]
    threads = [threading.Thread(target=torch.save, args=(model.state_dict(), buffer)) for buffer in buffers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print({hashlib.sha256(buffer.getvalue()).hexdigest() for buffer in buffers})
    try:
        torch.save(lambda: None, io.BytesIO())
    except (pickle.PicklingError, AttributeError) as error:
        print(type(error).__name__)


def optimizers() -> None:
    """Several optimizers, one with a closure, a scaler, and hooks of the program's own."""
    model, first = model_and_optimizer()
    second = torch.optim.LBFGS(model.parameters(), lr=0.1)
    third = torch.optim.SGD(model.parameters(), lr=0.1)
    seen: list[str] = []
    first.register_step_post_hook(lambda optimizer, _args, _kwargs: seen.append(type(optimizer).__name__))
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)

    def closure() -> torch.Tensor:
        second.zero_grad()
        loss: torch.Tensor = model.eval()(torch.ones(4)).square().sum()
        loss.backward()
        return loss

    print(second.step(closure).item(), first.step(), third.step())
    for _ in range(2):
        scaler.scale(model(torch.ones(4)).sum()).backward()
        scaler.step(first)
        scaler.update()
    print(digest(model), seen, scaler.get_scale())


def forks() -> None:
    """Children by `fork`, also those that a signal ends, and workers of data loaders."""
    for end in (lambda: os._exit(5), lambda: os.kill(os.getpid(), signal.SIGTERM)):
        print(os.waitstatus_to_exitcode(fork(end)), flush=True)
    print([batch.tolist() for batch in DataLoader(Squares(), batch_size=4, num_workers=2)])
    try:
        print([batch.tolist() for batch in DataLoader(Squares(fatal=5), batch_size=4, num_workers=2)])
    except RuntimeError as error:
        print(str(error).partition("(")[0])
    context = multiprocessing.get_context("fork")
    process = context.Process(target=sys.exit, args=(3,))
    process.start()
    process.join()
    print(process.exitcode)


def forked_ends() -> None:
    """Children by `fork` that come to Python's end. While a group is there they never do: torch joins a thread that is lost."""
    dist.destroy_process_group()
    for end in (lambda: sys.exit(4), lambda: None):
        print(os.waitstatus_to_exitcode(fork(end)), flush=True)
    dist.init_process_group("gloo")


def forked_handlers() -> None:
    """A handler that the program has set works in its children, too."""

    def leave(number: int, _frame: FrameType | None) -> None:
        print("handled", number, flush=True)
        os._exit(9)

    before = signal.signal(signal.SIGTERM, leave)
    print(before, os.waitstatus_to_exitcode(fork(lambda: os.kill(os.getpid(), signal.SIGTERM))), flush=True)
    signal.signal(signal.SIGTERM, before)


def fork(body: Callable[[], object]) -> int:
    """Runs it in a child, which then comes to its end; the answer is how it ended."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                return status
            time.sleep(0.005)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return 99 << 8
    body()
    sys.exit(0)


def children() -> None:
    """Python and other programs that it starts."""
    for words in (["-c", "print(1)"], ["-I", "-c", "print(2)"], ["-c", "import sys; sys.exit(3)"]):
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
        print(done.returncode, done.stdout, done.stderr)


def spawns() -> None:
    """Children by `spawn`: workers of data loaders, functions sent to processes, ranks of their own."""
    loader = DataLoader(Squares(), batch_size=4, num_workers=1, multiprocessing_context="spawn")
    print([batch.tolist() for batch in loader])
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(torch.save, ({}, os.devnull)))
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(rank_of_its_own, (2, f"{folder}/store"), nprocs=2)


def rank_of_its_own(number: int, count: int, store: str) -> None:
    """A rank that no launcher has started."""
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=count)
    value = torch.ones(1)
    dist.all_reduce(value)
    if number == 0:
        print(value.item(), flush=True)
    dist.destroy_process_group()


QUICK = (forked_ends, names, copies, compiled, checkpoints, optimizers, forks, forked_handlers, children)
SLOW = (spawns, compiled_by_inductor)


def main() -> None:
    """Runs them."""
    dist.init_process_group("gloo")
    named = {function.__name__: function for function in (*QUICK, *SLOW)}
    for function in [named[name] for name in sys.argv[1:]] or QUICK:
        print(f"-- {function.__name__}", flush=True)
        function()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
