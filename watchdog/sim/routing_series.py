"""Made-up routing of one MoE layer: healthy, ill, and healthy but looking ill. Seeded; nothing beyond the standard library.

Each step draws the counts as a multinomial over softmax(what the scenario wants + noise). The noise is AR(0.9) on every
expert's logit with a standard deviation of three times the relative deviation of a fair count, so that the load wanders as
that of real, correlated tokens does. A binomial of mean above 30 is drawn as a rounded normal, a smaller one as Poisson.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from math import exp, sqrt
from random import Random

from pardbg.watchdog.model.routing import RoutingRow

NOISE_TIMES_FLOOR = 3.0
MEMORY = 0.9
COLLAPSE_VIOLATION = 0.5
"""A collapse counts as begun when the load without noise has a MaxVio above this."""
NORMAL_FROM = 30

Wanted = Callable[[int], list[float]]
"""Logits of a step without noise."""


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer and how much it routes a step."""

    experts: int = 64
    top_k: int = 8
    tokens: int = 4096
    ep_size: int = 8
    capacity_factor: float = 1.25

    @property
    def fair(self) -> float:
        """Mean load of an expert, assignments a step."""
        return self.tokens * self.top_k / self.experts


def rows(layer: Layer, wanted: Wanted, random: Random, steps: int, *, number: int = 0) -> Iterator[RoutingRow]:
    """The rows of a scenario, from step 0 on."""
    deviation = NOISE_TIMES_FLOOR / sqrt(layer.fair)
    fresh = deviation * sqrt(1 - MEMORY * MEMORY)
    noise = [random.gauss(0, deviation) for _ in range(layer.experts)]
    capacity = layer.fair * layer.capacity_factor
    for step in range(steps):
        noise = [MEMORY * value + random.gauss(0, fresh) for value in noise]
        shares = softmax([logit + value for logit, value in zip(wanted(step), noise, strict=True)])
        counts = multinomial(layer.tokens * layer.top_k, shares, random)
        dropped = sum(max(0.0, count - capacity) for count in counts)
        yield RoutingRow(
            step=step,
            layer=number,
            counts=counts,
            dropped=dropped,
            predicted_dropped=dropped,
            capacity=capacity,
            top_k=layer.top_k,
            tokens=layer.tokens,
            ep_size=layer.ep_size,
        )


def begins(wanted: Wanted, steps: int) -> int | None:
    """The step at which MaxVio of the load without noise passes 0.5 for good."""
    over = [max(softmax(wanted(step))) * len(wanted(step)) - 1 > COLLAPSE_VIOLATION for step in range(steps)]
    return next((step for step in range(steps) if all(over[step:])), None)


def softmax(logits: list[float]) -> list[float]:
    """Shares of the experts."""
    largest = max(logits)
    weights = [exp(logit - largest) for logit in logits]
    whole = sum(weights)
    return [weight / whole for weight in weights]


def multinomial(draws: int, shares: list[float], random: Random) -> tuple[int, ...]:
    """Counts that sum to ``draws``: each expert's a binomial of what is left."""
    counts = []
    rest = list(accumulate(reversed(shares)))[::-1]
    for share, left in zip(shares, rest, strict=True):
        count = draws if left <= share else _binomial(draws, share / left, random)
        counts.append(count)
        draws -= count
    return tuple(counts)


def _binomial(draws: int, share: float, random: Random) -> int:
    mean = draws * share
    if mean >= NORMAL_FROM:
        return min(draws, max(0, round(random.gauss(mean, sqrt(mean * (1 - share))))))
    count, product, limit = 0, random.random(), exp(-mean)
    while product > limit:
        count += 1
        product *= random.random()
    return min(draws, count)
