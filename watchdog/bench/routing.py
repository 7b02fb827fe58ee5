"""How soon a collapse of the router is told, and how often what looks like one is: ``python -m pardbg.watchdog.bench.routing``.

One layer, E 64, k 8, 4,096 tokens a step, over many seeds of each scenario. Prints Markdown; about a minute for 100 seeds.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from statistics import median, quantiles

from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.routing.layer_watch import LayerWatch
from pardbg.watchdog.sim import routing_scenarios as scenarios
from pardbg.watchdog.sim.routing_series import Layer, begins, rows

LAYER = Layer()
STEPS = 600
SEEDS = 100
COLLAPSES = {"slow collapse": scenarios.collapse(scenarios.SLOW), "fast collapse": scenarios.collapse(scenarios.FAST)}
HEALTHY = {
    "steady": scenarios.steady,
    "two-step skew": scenarios.skewed_batch,
    "oscillation": scenarios.oscillation,
    "warm-up": scenarios.warm_up,
    "restart without balancing state": scenarios.restart,
    "other data": scenarios.other_data,
    "padding": scenarios.padding,
    "W3 spread": scenarios.spread,
    "W6 rotating": scenarios.rotating,
    "W7 burst": scenarios.burst,
}
ILL = {
    "W1 hot experts": (scenarios.hot_experts, Kind.ROUTER_COLLAPSE),
    "W2 hot rank": (scenarios.hot_rank, Kind.EP_IMBALANCE),
    "W5 zero-load rank": (scenarios.zero_load_rank, Kind.DEAD_EXPERTS),
}


@dataclass(frozen=True, kw_only=True)
class Heard:
    """The first alarm of each kind in one seed, by step, and when the collapse began."""

    alarms: dict[Kind, int]
    began: int | None


def listen(scenario: scenarios.Scenario, seed: int, steps: int = STEPS) -> Heard:
    """Runs one seed of a scenario through the detectors."""
    random = Random(seed)
    wanted = scenario(LAYER, random, steps)
    watch = LayerWatch(0)
    for row in rows(LAYER, wanted, random, steps):
        watch.feed(row)
    alarms: dict[Kind, int] = {}
    for illness in (*watch.past, *watch.illnesses):
        alarms[illness.kind] = min(alarms.get(illness.kind, illness.alarm_step), illness.alarm_step)
    return Heard(alarms=alarms, began=begins(wanted, steps))


def delays(scenario: scenarios.Scenario, seeds: int, steps: int = STEPS) -> tuple[list[int], int, int]:
    """Steps from the beginning of the collapse to its alarm; how many were too early (before it began), and missed."""
    heard = [listen(scenario, seed, steps) for seed in range(seeds)]
    told = [one.alarms[Kind.ROUTER_COLLAPSE] - (one.began or 0) for one in heard if Kind.ROUTER_COLLAPSE in one.alarms]
    return [delay for delay in told if delay >= 0], sum(delay < 0 for delay in told), seeds - len(told)


def table(seeds: int = SEEDS) -> Iterator[str]:
    """The lines of the Markdown tables."""
    yield f"Delay from MaxVio 0.5 (noise-free) to the alarm `router-collapse`, steps, {seeds} seeds each:"
    yield ""
    yield "| scenario | median | p90 | largest | before it began | missed |"
    yield "|---|---|---|---|---|---|"
    for name, scenario in COLLAPSES.items():
        told, early, missed = delays(scenario, seeds)
        yield f"| {name} | {median(told):.0f} | {quantiles(told, n=10)[-1]:.0f} | {max(told)} | {early} | {missed} |"
    yield ""
    yield f"Alarms where nothing is ill, series of {STEPS} steps, of {seeds} seeds each:"
    yield ""
    yield "| scenario | " + " | ".join(kind.value for kind in KINDS) + " |"
    yield "|---|" + "---|" * len(KINDS)
    for name, scenario in HEALTHY.items():
        yield _row(name, scenario, seeds)
    yield ""
    yield "The same where something is, with the verdict that is right:"
    yield ""
    yield "| scenario (right verdict) | " + " | ".join(kind.value for kind in KINDS) + " |"
    yield "|---|" + "---|" * len(KINDS)
    for name, (scenario, right) in ILL.items():
        yield _row(f"{name} ({right.value})", scenario, seeds)


KINDS = (Kind.ROUTER_COLLAPSE, Kind.DROP_SPIKE, Kind.DEAD_EXPERTS, Kind.EP_IMBALANCE)


def _row(name: str, scenario: scenarios.Scenario, seeds: int) -> str:
    heard = [listen(scenario, seed) for seed in range(seeds)]
    return f"| {name} | " + " | ".join(str(sum(kind in one.alarms for one in heard)) for kind in KINDS) + " |"


def cost_us(experts: int, steps: int = 400) -> float:
    """CPU time that one row takes, microseconds: the median of runs of 20 rows."""
    layer = Layer(experts=experts, tokens=4096)
    random = Random(1)
    series = list(rows(layer, scenarios.steady(layer, random, steps), random, steps))
    watch, times = LayerWatch(0), []
    for first in range(0, steps, 20):
        start = time.process_time()
        for row in series[first : first + 20]:
            watch.feed(row)
        times.append((time.process_time() - start) / 20 * 1e6)
    return median(times)


if __name__ == "__main__":
    for line in table(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    sys.stdout.write(f"\nCPU time of a row: {cost_us(64):.0f} us for 64 experts, {cost_us(256):.0f} us for 256.\n")
