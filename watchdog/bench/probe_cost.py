"""What the probe costs: its own time a step, the start of a Python that it has no business in, and training as a whole.

Figures are processor time where they can be: others may use the machine. torch is imported in children only. Run it as
``python -m pardbg.watchdog.bench.probe_cost``; it takes some minutes and prints a line a figure.
"""

import json
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pardbg.collectors.probe import page_format, places
from pardbg.watchdog.model.base import Noun

STEPS = 10_000
TRIES = 3
STARTS = 200
BLOCKS = 20
BLOCK_STEPS = 1500
RESAMPLES = 2000
CONFIDENCE = 0.95

_TINY = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
weight = torch.nn.Parameter(torch.ones(1)); weight.grad = torch.ones(1)
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range({steps}):
    optimizer.step()
"""
_TRAINING = """
import json, os, time
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
import torch, torch.distributed as dist
dist.init_process_group("gloo")
torch.manual_seed(0)
layers = [layer for _ in range(4) for layer in (torch.nn.Linear(384, 384), torch.nn.ReLU())]
model = torch.nn.Sequential(*layers)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(128, 384)
def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
def measure(steps):
    cpu, wall = time.process_time(), time.perf_counter()
    train(steps)
    return time.process_time() - cpu, time.perf_counter() - wall
train(50)
parts = [measure(25) for _ in range({steps} // 25)]
print(json.dumps([sorted(part)[len(part) // 10] for part in zip(*parts)]))
"""


class Interval(Noun, frozen=True, kw_only=True):
    """An estimate with the ends of its 95 % confidence interval."""

    middle: float
    low: float
    high: float


class OwnTime(Noun, frozen=True, kw_only=True):
    """What the page of a rank says of the probe's own time, microseconds."""

    per_hook_us: float
    per_step_us: float


def measure_own_time() -> OwnTime:
    """``STEPS`` steps of a tiny optimizer; the probe has its own account on the page.

    It is wall time, and another process may have had the processor meanwhile: the best of ``TRIES`` counts.
    """
    records = [_last_step() for _ in range(TRIES)]
    best = min(records, key=lambda record: record.own_ns)
    return OwnTime(per_hook_us=best.own_ns / best.hook_count / 1e3, per_step_us=best.own_ns / best.step / 1e3)


def _last_step() -> page_format.StepRecord:
    with tempfile.TemporaryDirectory(prefix="pardbg-bench-", dir="/dev/shm") as folder:
        _run(_TINY.format(steps=STEPS), _prepared(folder))
        page = next(Path(folder).glob(f"*-*/{places.PAGE_FILE}")).read_bytes()
    record = page_format.decode_record(page_format.StepRecord, page)
    if not isinstance(record, page_format.StepRecord):
        raise TypeError("the page holds no step")
    return record


def measure_start(*, is_rank: bool) -> Interval:
    """How much longer a Python without torch takes to start with our path, milliseconds: the median of pairs."""
    rank = {"RANK": "0"} if is_rank else {}
    with tempfile.TemporaryDirectory(prefix="pardbg-bench-", dir="/dev/shm") as folder:
        prepared = _prepared(folder)
        variables = [{**_plain(), **rank}, {**_plain(), **rank, "PYTHONPATH": prepared["PYTHONPATH"]}]
        pairs = [[_cpu_of_start(variables[arm]) for arm in _order(index)] for index in range(STARTS)]
    differences = [1e3 * (pair[_order(index)[1]] - pair[_order(index)[0]]) for index, pair in enumerate(pairs)]
    return _bootstrap(differences, is_median=True)


def measure_training() -> tuple[Interval, Interval]:
    """How much longer training takes, per cent of its processor time and of its wall time, in ``BLOCKS`` pairs.

    The two of a pair run at once on one processor: so others who use the machine disturb both alike. Of each run a part that
    was disturbed little counts. A step takes some 10 ms here, less than most that people train with.
    """
    cpu, wall = [], []
    for index in range(BLOCKS):
        with tempfile.TemporaryDirectory(prefix="pardbg-bench-", dir="/dev/shm") as folder:
            variables = [{**_plain(), **_WORLD}, _prepared(folder)]
            program = _TRAINING.format(steps=BLOCK_STEPS)
            with ThreadPoolExecutor(2) as pool:
                runs = {arm: pool.submit(_run, program, variables[arm]) for arm in _order(index)}
            times = {arm: json.loads(run.result()) for arm, run in runs.items()}
        cpu.append(math.log(times[1][0] / times[0][0]))
        wall.append(math.log(times[1][1] / times[0][1]))
    return _percent(_bootstrap(cpu, is_median=False)), _percent(_bootstrap(wall, is_median=False))


_WORLD = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}


def _plain() -> dict[str, str]:
    foreign = ("TORCH", "NCCL", "PARDBG", "PYTHON", "RANK", "LOCAL_", "GROUP_", "WORLD_", "MASTER_")
    own = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {**own, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


def _prepared(folder: str) -> dict[str, str]:
    """The environment of a rank that `pardbg run` has started."""
    variables = {**_plain(), **_WORLD, places.ROOT_VARIABLE: folder}
    words = [sys.executable, "-m", "pardbg", "run", "--job", "bench", "--print-env", "--json"]
    planned = json.loads(subprocess.run(words, env=variables, capture_output=True, check=True).stdout)  # noqa: S603 - our own
    return {**variables, **planned["set"]}


def _order(index: int) -> tuple[int, int]:
    """Which arm goes first: plain (0) or prepared (1)."""
    return (0, 1) if index % 2 == 0 else (1, 0)


def _run(program: str, variables: dict[str, str]) -> str:
    words = [sys.executable, "-c", program]
    return subprocess.run(words, env=variables, capture_output=True, check=True, text=True).stdout  # noqa: S603 - our own


def _cpu_of_start(variables: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _run("pass", variables)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _bootstrap(values: Sequence[float], *, is_median: bool) -> Interval:
    middle = statistics.median if is_median else statistics.fmean
    chance = random.Random(0)
    again = sorted(middle(chance.choices(values, k=len(values))) for _ in range(RESAMPLES))
    tail = (1 - CONFIDENCE) / 2
    return Interval(middle=middle(values), low=again[int(tail * RESAMPLES)], high=again[int((1 - tail) * RESAMPLES)])


def _percent(interval: Interval) -> Interval:
    low, middle, high = (100 * math.expm1(value) for value in (interval.low, interval.middle, interval.high))
    return Interval(low=low, middle=middle, high=high)


def main() -> None:
    """Prints every figure."""
    own = measure_own_time()
    print(f"own time: {own.per_hook_us:.2f} us a hook, {own.per_step_us:.2f} us a step")  # noqa: T201 - the answer
    for is_rank in (False, True):
        start = measure_start(is_rank=is_rank)
        text = f"start, RANK {'set' if is_rank else 'not set'}: {start.middle:+.2f} ms ({start.low:+.2f} to {start.high:+.2f})"
        print(text)  # noqa: T201
    for name, ratio in zip(("processor", "wall"), measure_training(), strict=True):
        print(f"training, {name} time: {ratio.middle:+.2f} % ({ratio.low:+.2f} to {ratio.high:+.2f})")  # noqa: T201


if __name__ == "__main__":
    main()
