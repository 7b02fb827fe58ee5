"""Each detector on series that differ in one thing."""

from random import Random

import pytest

from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.model.routing import RoutingRow
from pardbg.watchdog.routing import doubts
from pardbg.watchdog.routing.doubts import SETTLED, is_remark
from pardbg.watchdog.routing.explaining import explains
from pardbg.watchdog.routing.layer_watch import LayerWatch
from pardbg.watchdog.routing.model_watch import ALL_FROZEN, NONE_LEARNS, TOLD_FROZEN, RoutingWatch
from pardbg.watchdog.routing.no_gradient import NoGradientWatch

from .making import EVEN, fed, found, row, with_drops


def test_a_drop_rate_that_jumps_is_told_at_its_third_step() -> None:
    illness = found(fed(with_drops([0.005] * 80 + [0.18] * 20)))[Kind.DROP_SPIKE]
    assert (illness.since_step, illness.alarm_step, illness.until_step) == (80, 82, None)
    assert illness.value == pytest.approx(0.18)
    assert illness.usual == pytest.approx(0.005)


def test_a_drop_rate_that_comes_back_ends_the_alarm_at_its_first_good_step() -> None:
    illness = found(fed(with_drops([0.005] * 80 + [0.18] * 20 + [0.005] * 20)))[Kind.DROP_SPIKE]
    assert illness.until_step == 100


@pytest.mark.parametrize(
    "ratios",
    [
        pytest.param([0.005] * 80 + [0.6] * 2 + [0.005] * 20, id="a skewed batch of two steps"),
        pytest.param([0.12] * 100, id="a capacity that has always been small"),
        pytest.param([0.5 * 0.97**step for step in range(200)], id="a warm-up"),
        pytest.param([0.0] * 80 + [0.04] * 80, id="more than before, but little"),
        pytest.param([0.9] * 9, id="nine steps"),
    ],
)
def test_drops_that_are_no_spike_are_not_told(ratios: list[float]) -> None:
    assert found(fed(with_drops(ratios))) == {}


def test_a_drop_rate_that_is_enormous_from_the_first_row_on_is_told() -> None:
    assert found(fed(with_drops([0.92] * 25)))[Kind.DROP_SPIKE].since_step == 0


def test_without_a_capacity_no_drop_rate_is_watched() -> None:
    assert found(fed([row(step, dropped=0) for step in range(100)])) == {}


def test_experts_that_get_nothing_are_named_with_the_step_since_when() -> None:
    dead = (819, 0, 819, 820, 819, 0, 819, 0)
    illness = found(fed([row(step, counts=EVEN if step < 30 else dead) for step in range(60)]))[Kind.DEAD_EXPERTS]
    assert (illness.since_step, illness.alarm_step, illness.value, illness.experts) == (30, 49, 0.375, (1, 5, 7))


def test_experts_that_chance_passes_over_are_not_dead() -> None:
    random = Random(3)
    steps = [tuple(random.choice((0, 0, 1)) for _ in range(64)) for _ in range(100)]
    assert Kind.DEAD_EXPERTS not in found(fed([row(step, counts=counts) for step, counts in enumerate(steps)]))


def test_a_router_without_gradient_is_told_beside_layers_that_have_one() -> None:
    watch = RoutingWatch()
    watch.feed(
        row(step, layer=layer, router_grad_norm=7e-10 if layer == 2 else 1e-2) for step in range(30) for layer in range(4)
    )
    assert [(one.kind, one.layer, one.since_step, one.alarm_step) for one in watch.illnesses] == [
        (Kind.ROUTER_NO_GRADIENT, 2, 0, 7)
    ]


def test_a_router_that_loses_its_gradient_is_told_alone() -> None:
    watch = RoutingWatch()
    watch.feed(row(step, router_grad_norm=1e-2 if step < 40 else 0.0) for step in range(60))
    assert [(one.since_step, one.alarm_step) for one in watch.illnesses] == [(40, 47)]


def test_seven_skipped_steps_are_no_lost_gradient() -> None:
    watch = RoutingWatch()
    watch.feed(row(step, router_grad_norm=0.0 if 40 <= step < 47 else 1e-2) for step in range(60))
    assert (watch.illnesses, watch.past) == ((), ())


def test_one_frozen_router_is_ill_and_all_frozen_are_a_choice() -> None:
    one, every = RoutingWatch(), RoutingWatch()
    rows = [row(step, layer=layer) for step in range(12) for layer in range(2)]
    one.feed(rows, frozen=(1,))
    every.feed(rows, frozen=(0, 1))
    assert [(illness.kind, illness.layer) for illness in one.illnesses] == [(Kind.ROUTER_NO_GRADIENT, 1)]
    assert (every.illnesses, every.doubts) == ((), (ALL_FROZEN,))


def test_router_frozen_with_its_block_is_a_remark_and_one_frozen_on_the_way_is_ill_since_then() -> None:
    meant, late = RoutingWatch(), RoutingWatch()
    rows = [row(step, layer=layer) for step in range(12) for layer in range(2)]
    meant.feed(rows, frozen=(1,), settled=(1,))
    assert meant.illnesses == ()
    assert meant.doubts == (f"layer 1: {SETTLED}",)
    assert all(map(is_remark, meant.doubts))
    norms = [(step, layer, 0.0 if layer and step >= 20 else 0.5) for step in range(40) for layer in range(2)]
    late.feed([row(step, layer=layer, router_grad_norm=norm) for step, layer, norm in norms], frozen=(1,))
    assert [(illness.layer, illness.since_step, illness.figure) for illness in late.illnesses] == [(1, 20, TOLD_FROZEN)]


def test_no_gradient_anywhere_from_the_beginning_is_a_doubt() -> None:
    watch = RoutingWatch()
    watch.feed(row(step, layer=layer, router_grad_norm=0.0) for step in range(40) for layer in range(2))
    assert (watch.illnesses, watch.doubts) == ((), (NONE_LEARNS,))


@pytest.mark.parametrize(
    ("rows", "doubt"),
    [
        ([row(step, dropped=1000, predicted_dropped=100, capacity=640) for step in range(10)], doubts.DROPS_DISAGREE),
        ([row(step, tokens=1024, top_k=2) for step in range(10)], doubts.COUNTED_TWICE),
        ([row(step, tokens=1500, top_k=2) for step in range(10)], doubts.SUM_IS_OFF),
        ([row(step, tokens=2348, top_k=2, dropped=600) for step in range(10)], doubts.AFTER_DROPS),
        ([row(step, counts=(512 * (step + 1),) * 8) for step in range(10)], doubts.NEVER_CLEARED),
        ([row(step, counts=(512, 512 + 200 * (step % 2)), aux_loss=1.0) for step in range(20)], doubts.AUX_CONSTANT),
        ([row(step, capacity=51300) for step in range(10)], doubts.CAPACITY_IMPLAUSIBLE),
        ([row(step, entropy=2.0794) for step in range(10)], doubts.LEARNS_NOTHING),
    ],
)
def test_what_does_not_add_up_is_a_doubt_and_no_alarm(rows: list[RoutingRow], doubt: str) -> None:
    watch = fed(rows)
    assert (watch.doubts, found(watch)) == ((doubt,), {})


def test_a_layer_that_has_always_been_uneven_is_a_doubt() -> None:
    watch = fed([row(step, counts=(1500, 1500, *(183,) * 6), top_k=2) for step in range(80)])
    assert (watch.doubts, found(watch)) == ((doubts.UNEVEN_ALL_ALONG,), {})


def test_consistent_counts_raise_no_doubt() -> None:
    rows = [row(step, tokens=2048, top_k=2, dropped=20, predicted_dropped=18, capacity=640, aux_loss=1.0) for step in range(20)]
    assert fed(rows).doubts == ()


def test_no_drop_rate_is_derived_from_counts_that_were_counted_twice() -> None:
    rows = [row(step, tokens=1024, top_k=2, dropped=20 if step < 60 else 2000, capacity=640) for step in range(90)]
    assert found(fed(rows)) == {}


def test_a_step_seen_before_and_a_row_without_load_change_nothing() -> None:
    watch = LayerWatch(0)
    for step in (0, 1, 1, 2):
        watch.feed(row(step, counts=EVEN if step < 2 else (0,) * 8))
    assert (watch.figures, watch.illnesses, watch.doubts) == (None, (), ())


def test_a_collapse_explains_dead_experts_of_its_layer_and_is_told_first() -> None:
    one_set = (2048, 2048, 0, 0, 0, 0, 0, 0)
    watch = RoutingWatch()
    watch.feed(row(step, counts=EVEN if step < 100 else one_set, top_k=2) for step in range(140))
    collapse, dead = watch.illnesses
    assert (collapse.kind, dead.kind, collapse.experts[:2]) == (Kind.ROUTER_COLLAPSE, Kind.DEAD_EXPERTS, (0, 1))
    assert explains(collapse, dead)
    assert not explains(dead, collapse)


def without_gradient(norm: float, others: float | None, count: int) -> bool:
    """Whether a layer that has had no gradient since its first row is told, with no past of its own."""
    watch = NoGradientWatch(0)
    for step in range(count):
        watch.feed(step, norm, others)
    return watch.alarm.illness is not None


def test_router_with_nothing_to_compare_is_without_gradient_after_long_only() -> None:
    assert without_gradient(0.0, None, 26) is False  # twenty alone, then eight on end
    assert without_gradient(0.0, None, 27) is True
    assert without_gradient(0.0, 1e-2, 8) is True


def test_router_that_is_as_small_as_the_others_is_not_without_gradient() -> None:
    assert without_gradient(5e-8, 1e-5, 40) is False  # the whole model is at the end of its schedule
    assert without_gradient(5e-8, 1e-2, 40) is True
    assert without_gradient(1e-6, 1e-1, 40) is False  # small, and not nothing
