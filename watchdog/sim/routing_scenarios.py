"""The scenarios of a layer: collapses, what looks like one, and the workloads W0 to W7 of NVIDIA/Megatron-LM#7488.

Each takes a layer, a source of chance and the number of steps, and gives the logits wanted at a step, without noise.
"""

from collections.abc import Callable
from math import exp, log
from random import Random

from pardbg.watchdog.sim.routing_series import Layer, Wanted

Scenario = Callable[[Layer, Random, int], Wanted]

SLOW, FAST = 0.03, 0.4
"""Drift of the favoured logits, a step."""
LARGEST_DRIFT = 7.0


def steady(layer: Layer, random: Random, steps: int) -> Wanted:
    """A trained router: slightly uneven, always the same."""
    del steps
    base = _uneven(layer, random, 0.1)
    return lambda _: base


def collapse(drift: float) -> Scenario:
    """As many experts as a token takes become ever more favoured, from about the middle on."""

    def scenario(layer: Layer, random: Random, steps: int) -> Wanted:
        base = _uneven(layer, random, 0.1)
        onset = random.randrange(steps // 3, steps // 2)
        favoured = random.sample(range(layer.experts), layer.top_k)
        return lambda step: _add(base, favoured, min(LARGEST_DRIFT, max(0, step - onset) * drift))

    return scenario


def skewed_batch(layer: Layer, random: Random, steps: int) -> Wanted:
    """Four times two steps of data that only a few experts like."""
    base = _uneven(layer, random, 0.1)
    starts = [random.randrange(steps) for _ in range(4)]
    skewed = {step + later: random.sample(range(layer.experts), layer.top_k) for step in starts for later in (0, 1)}
    return lambda step: _add(base, skewed.get(step, []), 3.0)


def oscillation(layer: Layer, random: Random, steps: int) -> Wanted:
    """A balancing bias that overshoots: half of the experts up, half down, and back, every 1 to 6 steps."""
    base = _uneven(layer, random, 0.1)
    onset, half_period = random.choice((0, steps // 2)), random.randint(1, 6)
    up = random.sample(range(layer.experts), layer.experts // 2)
    height = 2 * random.uniform(0.1, 0.3)
    return lambda step: _add(base, up, height * (-1) ** (step // half_period)) if step >= onset else base


def warm_up(layer: Layer, random: Random, steps: int) -> Wanted:
    """An untrained router (MaxVio about 2.7) that gets even with a time constant of 60 to 300 steps."""
    del steps
    base, start = _uneven(layer, random, 0.1), _uneven(layer, random, 0.55)
    constant = random.uniform(60, 300)
    return lambda step: [usual + first * exp(-step / constant) for usual, first in zip(base, start, strict=True)]


def restart(layer: Layer, random: Random, steps: int) -> Wanted:
    """A restart in the middle that has lost the balancing state: even, then a warm-up once more."""
    base, again = _uneven(layer, random, 0.1), warm_up(layer, random, steps)
    return lambda step: base if step < steps // 2 else again(step - steps // 2)


def other_data(layer: Layer, random: Random, steps: int) -> Wanted:
    """A new stage of the data: within 1 to 10 steps the load moves to another level, and stays."""
    before, after = _uneven(layer, random, 0.1), _uneven(layer, random, 0.5)
    takes = random.uniform(1, 10)

    def wanted(step: int) -> list[float]:
        part = min(1.0, max(0.0, (step - steps // 2) / takes))
        return [(1 - part) * old + part * new for old, new in zip(before, after, strict=True)]

    return wanted


def padding(layer: Layer, random: Random, steps: int) -> Wanted:
    """From the middle on 10 to 35 % of a step are padding tokens, which all go to the same experts."""
    base = _uneven(layer, random, 0.1)
    same = random.sample(range(layer.experts), layer.top_k)
    shares = [random.uniform(0.1, 0.35) for _ in range(steps)]

    def wanted(step: int) -> list[float]:
        share = shares[step] if step >= steps // 2 else 0.0
        return _add(base, same, log(1 + share / (1 - share) * layer.experts / layer.top_k))

    return wanted


def hot_experts(layer: Layer, random: Random, steps: int) -> Wanted:
    """W1: from a third on, as many experts as a token takes have 70 % of the load between them, and keep it."""
    hot = random.sample(range(layer.experts), layer.top_k)
    more = log(0.7 / 0.3 * (layer.experts - layer.top_k) / layer.top_k)
    return lambda step: _add([0.0] * layer.experts, hot, more if step >= steps // 3 else 0.0)


def hot_rank(layer: Layer, random: Random, steps: int) -> Wanted:
    """W2: the experts of one EP rank have 2.2 times the mean load each."""
    del steps
    return _always(layer, _of_rank(layer, random.randrange(layer.ep_size)), log(2.66))


def spread(layer: Layer, random: Random, steps: int) -> Wanted:
    """W3: as hot, but one expert on each EP rank."""
    del steps
    block = layer.experts // layer.ep_size
    return _always(layer, [rank * block + random.randrange(block) for rank in range(layer.ep_size)], log(2.66))


def zero_load_rank(layer: Layer, random: Random, steps: int) -> Wanted:
    """W5: the experts of one EP rank have no tokens at all."""
    del steps
    return _always(layer, _of_rank(layer, random.randrange(layer.ep_size)), -50.0)


def rotating(layer: Layer, random: Random, steps: int) -> Wanted:
    """W6: each EP rank in turn is hot, for 2 to 8 steps."""
    del steps
    dwell, even = random.randint(2, 8), [0.0] * layer.experts
    return lambda step: _add(even, _of_rank(layer, step // dwell % layer.ep_size), log(2.66))


def burst(layer: Layer, random: Random, steps: int) -> Wanted:
    """W7: one EP rank gets nearly everything for one or two steps, ten times."""
    even = [0.0] * layer.experts
    starts = [random.randrange(steps) for _ in range(10)]
    hit = {step + later: random.randrange(layer.ep_size) for step in starts for later in range(random.randint(1, 2))}
    return lambda step: _add(even, _of_rank(layer, hit[step]), 4.0) if step in hit else even


def _uneven(layer: Layer, random: Random, deviation: float) -> list[float]:
    return [random.gauss(0, deviation) for _ in range(layer.experts)]


def _add(base: list[float], experts: list[int], more: float) -> list[float]:
    logits = list(base)
    for expert in experts:
        logits[expert] += more
    return logits


def _of_rank(layer: Layer, rank: int) -> list[int]:
    block = layer.experts // layer.ep_size
    return list(range(rank * block, (rank + 1) * block))


def _always(layer: Layer, experts: list[int], more: float) -> Wanted:
    logits = _add([0.0] * layer.experts, experts, more)
    return lambda _: logits
