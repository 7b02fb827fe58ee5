"""Real MoE training over four ranks that share the experts: what is ill is told, of which layer, and nothing else is.

One job trains all scenarios one after another under `pardbg run`: each goes on from the same healthy checkpoint, so that a
scenario, of which the rows are those of the healthy beginning and its own, is what a run of it alone would have given.
"""

import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.model.routing import RoutingSeries
from pardbg.watchdog.routing.illness import Illness
from pardbg.watchdog.routing.merging import merge
from pardbg.watchdog.routing.model_watch import RoutingWatch
from tests.moe.jobs.scenarios import HEALTHY_STEPS, SCENARIOS
from tests.moe.running import Trained, of_steps, train

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("moe-training")]  # one launch serves them all

TRAINED = ("healthy", "collapse", "skewed", "capacity-cut", "frozen", "hot-rank")  # together not more steps than a ring has
ILL = {
    "collapse": (Kind.ROUTER_COLLAPSE, 1, ()),
    "capacity-cut": (Kind.DROP_SPIKE, 2, ()),
    "frozen": (Kind.ROUTER_NO_GRADIENT, 1, ()),
    "hot-rank": (Kind.EP_IMBALANCE, 2, (2,)),
}
OF_COLLAPSE = {Kind.ROUTER_COLLAPSE, Kind.DROP_SPIKE, Kind.DEAD_EXPERTS}
MOVED = 0.02
KNOWN_TO_BOTH = ("step", "layer", "counts", "dropped", "capacity", "top_k", "tokens", "ep_size")


@pytest.fixture(scope="module")
def trained() -> Iterator[Trained]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield train("train_moe", ["--scenarios", *TRAINED], 4, Path(folder))


@pytest.fixture(scope="module")
def trained_otherwise() -> Iterator[Trained]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield train("train_moe", ["--seed", "7", "--scenarios", *TRAINED[1:], "spread"], 4, Path(folder))


@pytest.mark.parametrize("name", TRAINED)
def test_what_is_ill_in_a_training_is_told_by_what_it_wrote(trained: Trained, name: str) -> None:
    assert_told(name, trained.written(name))


@pytest.mark.parametrize("name", TRAINED)
def test_what_is_ill_in_a_training_is_told_by_what_the_probe_counted(trained: Trained, name: str) -> None:
    assert_told(name, [of_scenario(series, name) for series in trained.counted.values()])


def test_counts_of_the_probe_are_those_of_the_slow_reference(trained: Trained) -> None:
    assert_counts_equal(trained)


def test_collapse_is_told_before_the_loss_moves(trained: Trained) -> None:
    watch, _ = watched(trained.written("collapse"))
    alarm = next(illness.alarm_step for illness in watch.illnesses if illness.kind is Kind.ROUTER_COLLAPSE)
    losses, healthy = (
        {row.step: row.loss for row in merge(trained.written(name)).rows if row.loss is not None}
        for name in ("collapse", "healthy")
    )
    moved = next(step for step, loss in losses.items() if abs(loss / healthy[step] - 1) > MOVED)
    print(f"collapse from step {HEALTHY_STEPS + 1} on: told at step {alarm}, the loss has moved by 2 % at step {moved}")  # noqa: T201 - `pytest -s` shows it
    assert HEALTHY_STEPS < alarm < moved, f"told at step {alarm}, the loss has moved by 2 % at step {moved}"


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TRAINED[1:], "spread"])
def test_what_is_ill_in_another_training_is_told(trained_otherwise: Trained, name: str) -> None:
    assert_told(name, trained_otherwise.written(name))


@pytest.mark.slow
def test_counts_are_right_with_recomputation_and_micro_batches(tmp_path_short: Path) -> None:
    words = ["--before", "6", "--recompute", "saved", "--accumulate", "2"]
    assert_counts_equal(train("train_moe", words, 2, tmp_path_short))


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["--recompute", "reentrant"],
        ["--recompute", "reentrant", "--accumulate", "2"],
        ["--dropless", "--compile"],
        ["--dropless", "--compile", "--accumulate", "2"],
        ["--dropless", "--compile", "--recompute", "saved", "--accumulate", "2"],
    ],
    ids=" ".join,
)
def test_counts_are_right_however_it_is_trained(tmp_path_short: Path, words: list[str]) -> None:
    assert_counts_equal(train("train_moe", ["--before", "6", *words], 2, tmp_path_short))


@pytest.fixture
def tmp_path_short() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def assert_told(name: str, series: list[RoutingSeries]) -> None:
    """The right thing is told of the right layer, at the end too; of other layers, or of healthy runs, nothing at any time."""
    watch, ever = watched(series)
    if name not in ILL:
        assert ever == []
        return
    kind, layer, ep_ranks = ILL[name]
    allowed = OF_COLLAPSE if kind is Kind.ROUTER_COLLAPSE else {kind}
    assert [illness for illness in ever if illness.layer != layer or illness.kind not in allowed] == []
    first = watch.illnesses[0]
    assert (first.kind, first.layer, first.ep_ranks) == (kind, layer, ep_ranks)
    assert first.since_step > HEALTHY_STEPS


def assert_counts_equal(trained: Trained) -> None:
    """Exactly, of every rank, step, layer and expert."""
    for rank, (series, reference) in enumerate(zip(trained.counted.values(), trained.written("all"), strict=True)):
        counted = {(row.step, row.layer): row for row in series.rows}
        wanted = {(row.step, row.layer): row for row in reference.rows}
        assert sorted(counted) == sorted(wanted), f"rank {rank}"
        for key, row in wanted.items():
            found = counted[key]
            known = [field for field in KNOWN_TO_BOTH if field != "capacity" or row.capacity]  # 0: nothing is dropped
            assert [getattr(found, field) for field in known] == [getattr(row, field) for field in known], f"rank {rank}"
            assert found.router_grad_norm == pytest.approx(row.router_grad_norm, rel=1e-4), f"rank {rank}, {key}"


def of_scenario(series: RoutingSeries, name: str) -> RoutingSeries:
    """The rows of one scenario, out of what a job has trained of all, by the steps of the scenario."""
    earlier = TRAINED[: TRAINED.index(name)]
    begin = HEALTHY_STEPS + 1 + sum(SCENARIOS[other].steps for other in earlier)
    healthy = of_steps(series, range(1, HEALTHY_STEPS + 1), 1)
    own = of_steps(series, range(begin, begin + SCENARIOS[name].steps), HEALTHY_STEPS + 1)
    assert len(own) == 3 * SCENARIOS[name].steps
    return RoutingSeries(rows=(*healthy, *own), frozen=series.frozen)


def watched(series: list[RoutingSeries]) -> tuple[RoutingWatch, list[Illness]]:
    """The watch after the last step, and what it has told after any step."""
    watch, ever = RoutingWatch(), dict[tuple[Kind, int], Illness]()
    for _, rows in groupby(merge(series).rows, key=lambda row: row.step):
        watch.feed(list(rows))
        for illness in watch.illnesses:
            ever.setdefault((illness.kind, illness.layer), illness)
    return watch, list(ever.values())
