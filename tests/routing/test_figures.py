"""Figures of one row, and what chance makes of them."""

from random import Random

import pytest

from pardbg.watchdog.model.routing import RoutingRow
from pardbg.watchdog.routing import floors
from pardbg.watchdog.routing.figures import measure
from pardbg.watchdog.sim.routing_series import multinomial

pytestmark = pytest.mark.filterwarnings("error")


def test_figures_of_a_small_row_are_those_worked_out_by_hand() -> None:
    row = RoutingRow(
        step=3,
        layer=1,
        counts=(8, 4, 4, 0),
        dropped=2,
        predicted_dropped=3,
        entropy=0.6931471805599453,
        ep_size=2,
        aux_loss=1.5,
    )
    figures = measure(row)
    assert figures is not None
    assert figures.load_ratio_max == 2.0
    assert figures.max_violation == 1.0
    assert figures.variation == pytest.approx(0.7071067811865476)
    assert figures.deficit == pytest.approx(0.34657359)
    assert figures.mean_entropy_ratio == pytest.approx(0.75)
    assert figures.effective_experts == pytest.approx(2.8284271247461903)
    assert figures.token_entropy_ratio == pytest.approx(0.5)
    assert (figures.dead_ratio, figures.top_ratio, figures.drop_ratio, figures.predicted_drop_ratio) == (
        0.25,
        0.5,
        0.125,
        0.1875,
    )
    assert figures.ep_loads == (0.75, 0.25)
    assert (figures.ep_load_ratio_max, figures.aux_loss, figures.z) == (1.5, 1.5, None)


def test_a_uniform_load_has_no_imbalance_at_all() -> None:
    figures = measure(RoutingRow(step=0, layer=0, counts=(512,) * 64))
    assert figures is not None
    assert (figures.max_violation, figures.variation, figures.dead_ratio) == (0.0, 0.0, 0.0)
    assert figures.effective_experts == pytest.approx(64)


@pytest.mark.parametrize("counts", [(), (7,), (0, 0, 0), (4, -1)])
def test_a_row_without_a_load_has_no_figures(counts: tuple[int, ...]) -> None:
    assert measure(RoutingRow(step=0, layer=0, counts=counts)) is None


def test_what_is_not_a_number_is_not_known() -> None:
    figures = measure(RoutingRow(step=0, layer=0, counts=(1, 1), dropped=float("nan"), router_grad_norm=float("inf")))
    assert figures is not None
    assert (figures.drop_ratio, figures.router_grad_norm) == (None, None)


def test_noise_floors_are_those_of_the_knowledge_file() -> None:
    assert floors.max_violation(512, 64) == pytest.approx(0.1275, abs=1e-4)
    assert floors.entropy_deficit(512, 64) == pytest.approx(63 / 65536)
    assert floors.drop_ratio(512) == pytest.approx(0.0176, abs=1e-4)
    assert floors.drop_ratio(128) == pytest.approx(0.0353, abs=1e-4)


def test_noise_floors_agree_with_draws_of_a_uniform_router() -> None:
    random, draws = Random(5), 200
    figures = [measure(RoutingRow(step=0, layer=0, counts=multinomial(32768, [1 / 64] * 64, random))) for _ in range(draws)]
    known = [one for one in figures if one is not None]
    mean = sum(one.deficit for one in known) / draws
    spread = (sum((one.deficit - mean) ** 2 for one in known) / draws) ** 0.5
    assert mean == pytest.approx(floors.entropy_deficit(512, 64), rel=0.05)
    assert spread == pytest.approx(floors.deficit_deviation(512, 64), rel=0.2)
    assert sum(one.variation for one in known) / draws == pytest.approx(floors.relative_deviation(512), rel=0.05)
