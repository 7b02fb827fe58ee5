"""Whole series: collapses in time, and silence on what only looks like one. The bench takes more seeds of them."""

from random import Random
from statistics import median

import pytest

from pardbg.watchdog.bench import routing as bench
from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.routing.layer_watch import LayerWatch
from pardbg.watchdog.sim import routing_scenarios as scenarios
from pardbg.watchdog.sim.routing_series import Layer, begins, rows

STEPS = 240
MUST_BE_SILENT = ("steady", "two-step skew", "oscillation", "warm-up")
DROPS_ARE_REAL = {Kind.DROP_SPIKE, Kind.EP_IMBALANCE}


@pytest.mark.parametrize(("name", "limit"), [("slow collapse", 60), ("fast collapse", 30)])
def test_a_collapse_is_told_in_time(name: str, limit: int) -> None:
    told, early, missed = bench.delays(bench.COLLAPSES[name], seeds=2, steps=STEPS)
    assert (early, missed) == (0, 0)
    assert median(told) <= limit


@pytest.mark.parametrize("name", [*MUST_BE_SILENT, "W3 spread", "W6 rotating", "W7 burst"])
def test_what_only_looks_ill_is_not_told(name: str) -> None:
    assert bench.listen(bench.HEALTHY[name], 0, STEPS).alarms == {}


@pytest.mark.parametrize("name", ["restart without balancing state", "other data", "padding"])
def test_a_load_that_moves_once_is_no_collapse_though_it_drops(name: str) -> None:
    alarms = bench.listen(bench.HEALTHY[name], 1, STEPS).alarms
    assert alarms.keys() <= DROPS_ARE_REAL


@pytest.mark.parametrize("name", bench.ILL)
def test_workloads_that_are_ill_get_their_verdict(name: str) -> None:
    scenario, right = bench.ILL[name]
    kinds = set(bench.listen(scenario, 0, STEPS).alarms)
    assert right in kinds
    assert kinds <= {right, Kind.DROP_SPIKE}


@pytest.mark.parametrize(("length", "told"), [(9, set()), (30, {Kind.ROUTER_COLLAPSE, Kind.DROP_SPIKE})])
def test_a_job_that_was_collapsed_before_its_first_row(length: int, told: set[Kind]) -> None:
    watch, random = LayerWatch(0), Random(1)
    collapsed = scenarios.collapse(scenarios.FAST)(Layer(), random, STEPS)
    for row in rows(Layer(), lambda step: collapsed(step + 250), random, length):
        watch.feed(row)
    assert {illness.kind for illness in watch.illnesses} == told
    assert {illness.since_step for illness in watch.illnesses} <= {0}


def test_a_collapse_that_begins_in_the_warm_up_is_told() -> None:
    watch, random = LayerWatch(0), Random(2)
    calm = scenarios.warm_up(Layer(), random, STEPS)
    grows = [max(0.0, 0.05 * (step - 60)) for step in range(STEPS)]
    for row in rows(
        Layer(), lambda step: [logit + grows[step] * (place < 8) for place, logit in enumerate(calm(step))], random, 160
    ):
        watch.feed(row)
    assert watch.illnesses[0].kind is Kind.ROUTER_COLLAPSE
    assert set(watch.illnesses[0].experts) == set(range(8))


def test_a_restart_that_goes_back_to_a_checkpoint_is_no_drop_spike() -> None:
    watch, random = LayerWatch(0), Random(4)
    for row in rows(Layer(), scenarios.steady(Layer(), random, 150), random, 150):
        watch.feed(row)
    again = scenarios.warm_up(Layer(), Random(7), 150)
    for row in rows(Layer(), again, random, 40):
        watch.feed(row)
    assert (watch.illnesses, watch.past) == ((), ())


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_hundred_seeds_of_each_scenario_hold_the_promise() -> None:
    for name, limit in (("slow collapse", 60), ("fast collapse", 30)):
        told, early, missed = bench.delays(bench.COLLAPSES[name], seeds=100)
        assert median(told) <= limit, name
        assert early + missed <= 2, name
    for name in MUST_BE_SILENT:
        alarms = sum(bool(bench.listen(bench.HEALTHY[name], seed).alarms) for seed in range(100))
        assert alarms <= 2, name


def test_the_beginning_of_a_collapse_is_where_the_load_without_noise_passes_half_over_the_mean() -> None:
    even = [0.0] * 62
    assert begins(lambda step: [*even, 0.1 * step, 0.1 * step], 40) == 5
