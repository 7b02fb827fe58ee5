"""What a collapse is not, one reason at a time: loads without noise that are skewed by a known degree."""

from collections.abc import Iterable, Iterator
from math import exp, log

import pytest

from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.model.routing import RoutingRow

from .making import fed, found, row

EXPERTS, TOP_K, ASSIGNMENTS = 8, 2, 400_000


def skewed(degree: float, turn: int = 0) -> tuple[int, ...]:
    """Counts whose entropy deficit is so much of ln(E / k); ``turn`` says which expert has most."""
    low, high = 0.0, 9.0
    while high - low > 1e-6:
        slope = (low + high) / 2
        weights = [exp(-slope * place) for place in range(EXPERTS)]
        shares = [weight / sum(weights) for weight in weights]
        deficit = log(EXPERTS) + sum(share * log(share) for share in shares if share)
        low, high = (slope, high) if deficit < degree * log(EXPERTS / TOP_K) else (low, slope)
    return tuple(round(ASSIGNMENTS * shares[(place - turn) % EXPERTS]) for place in range(EXPERTS))


def rows_of(degrees: Iterable[float], *, turning: bool = False) -> Iterator[RoutingRow]:
    for step, degree in enumerate(degrees):
        yield row(step, counts=skewed(degree, step if turning else 0), top_k=TOP_K)


EVEN = [0.01] * 120


def grows(count: int = 80) -> list[float]:
    return [min(0.02 * 1.05**step, 0.8) for step in range(count)]


@pytest.mark.parametrize(
    "degrees",
    [
        pytest.param([*EVEN, *[0.25] * 60], id="moves once and stays"),
        pytest.param([*EVEN, *(0.25 + 0.5 * 0.97**step for step in range(80))], id="gets better after a restart"),
        pytest.param([*(0.95 * 0.985**step for step in range(120))], id="gets better from the beginning"),
        pytest.param([0.3] * 200, id="uneven all along"),
    ],
)
def test_load_that_does_not_get_worse_is_no_collapse(degrees: list[float]) -> None:
    assert Kind.ROUTER_COLLAPSE not in found(fed(rows_of(degrees)))


def test_load_that_gets_worse_is_one_and_hot_experts_that_change_are_none() -> None:
    assert Kind.ROUTER_COLLAPSE in found(fed(rows_of([*EVEN, *grows()])))
    assert Kind.ROUTER_COLLAPSE not in found(fed(rows_of([*EVEN, *grows()], turning=True)))


def test_load_that_stays_severe_after_an_even_past_is_a_collapse() -> None:
    assert Kind.ROUTER_COLLAPSE in found(fed(rows_of([*EVEN, *[0.6] * 40])))
