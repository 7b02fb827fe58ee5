"""Every simulated fault, its near misses and its variants, from encoded dumps to the verdict."""

import pytest
from msgspec.structs import replace

from pardbg.watchdog.bench.objections import objections
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.scenario import SCENARIOS
from tests.diagnosis.diagnosing import diagnose

CASES = [(name, backend) for name, fault in SCENARIOS.items() for backend in fault.backends]
EVERY = 3
LARGE_CASES = [
    pytest.param(
        name,
        backend,
        marks=[] if number % EVERY == 0 and backend == fault.backends[number % len(fault.backends)] else pytest.mark.slow,
    )
    for number, (name, fault) in enumerate(SCENARIOS.items())
    for backend in fault.backends
]  # every third fault on one back end; all others in `make test-all`
MISSING_SAMPLES = 3  # ranks whose file is left out in turn, besides the culprit's own, spread over the job


def check(recipe: Recipe) -> None:
    report, truth = diagnose(recipe)
    assert objections(report, truth) == []


@pytest.mark.parametrize(("fault", "backend"), CASES)
def test_verdict_is_the_planted_fault(fault: str, backend: str) -> None:
    check(Recipe(fault=fault, backend=backend))


@pytest.mark.parametrize(("fault", "backend"), CASES)
@pytest.mark.parametrize("variant", ["is_json", "is_active_only", "has_skew"])
def test_verdict_does_not_depend_on_how_the_evidence_was_recorded(fault: str, backend: str, variant: str) -> None:
    check(replace(Recipe(fault=fault, backend=backend, entries=80), **{variant: True}))


@pytest.mark.parametrize(("fault", "backend"), CASES)
def test_missing_file_makes_nobody_guilty(fault: str, backend: str) -> None:
    whole = diagnose(Recipe(fault=fault, backend=backend, entries=40))[1]
    for rank in {*whole.culprits[:1], *whole.candidates[:1], *range(1, 16, 16 // MISSING_SAMPLES)}:
        check(Recipe(fault=fault, backend=backend, entries=40, missing=(rank,)))


@pytest.mark.parametrize(("fault", "backend"), CASES)
def test_verdict_holds_for_64_ranks(fault: str, backend: str) -> None:
    check(Recipe(fault=fault, backend=backend, ranks=64, entries=40))


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "backend"), CASES)
def test_missing_file_among_64_makes_nobody_guilty(fault: str, backend: str) -> None:
    check(Recipe(fault=fault, backend=backend, ranks=64, entries=40, missing=(21,)))


@pytest.mark.parametrize(("fault", "backend"), LARGE_CASES)
def test_verdict_holds_for_512_ranks(fault: str, backend: str) -> None:
    check(Recipe(fault=fault, backend=backend, ranks=512, entries=24))


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "backend"), CASES)
def test_missing_file_among_512_makes_nobody_guilty(fault: str, backend: str) -> None:
    check(Recipe(fault=fault, backend=backend, ranks=512, entries=24, missing=(200,)))


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "backend"), CASES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_verdict_holds_for_other_seeds(fault: str, backend: str, seed: int) -> None:
    check(Recipe(fault=fault, backend=backend, ranks=32, entries=40, seed=seed))
