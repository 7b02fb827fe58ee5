"""Every scenario: its files, its truth, and that equal recipes give equal bytes."""

import hashlib
import json
import pickle
from functools import cache
from pathlib import Path

import pytest

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.names import Cause, Kind, Status
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.scenario import SCENARIOS, near_misses
from pardbg.watchdog.sim.scenario import simulate as simulate_anew
from pardbg.watchdog.sim.truth import NOT_SURE, Answer, Truth
from pardbg.watchdog.sim.write import write_job

simulate = cache(simulate_anew)  # recipes are values; what is simulated is not changed here
EVERY_RECIPE = [
    Recipe(fault=name, backend=backend, entries=80) for name, fault in SCENARIOS.items() for backend in fault.backends
]
every_recipe = pytest.mark.parametrize("recipe", EVERY_RECIPE, ids=lambda recipe: f"{recipe.fault}-{recipe.backend}")
# Two of a kind: their near misses hang on the first of them.
VARIANTS = {
    "missing-participant-checkpoint",
    "missing-participant-data-loader",
    "missing-participant-lock",
    "dead-rank-exception",
    "dead-rank-job-hangs",
    "two-faults-device-and-host",
}


@every_recipe
def test_scenario_writes_files_that_can_be_read_back(recipe: Recipe, tmp_path: Path) -> None:
    job = simulate(recipe)

    paths = write_job(job, tmp_path)

    dumps = {path.name: pickle.loads(path.read_bytes()) for path in paths if "trace" in path.name}
    assert dumps == {f"nccl_trace_rank_{rank}": dump for rank, dump in job.dumps.items()}
    assert json.loads((tmp_path / "job.json").read_text()) == job.job
    assert [entry["rank"] for entry in job.job["ranks"]] == list(range(16))


@every_recipe
def test_truth_keeps_to_the_vocabulary_and_to_the_contract(recipe: Recipe, tmp_path: Path) -> None:
    job = simulate(recipe)
    write_job(job, tmp_path)

    truth = json.loads((tmp_path / "truth.json").read_text())

    assert truth["kind"] in {None, *(kind.value for kind in Kind)}
    assert truth["cause"] in {None, *(cause.value for cause in Cause)}
    assert (truth["kind"] is None) == (truth["status"] == Status.HEALTHY.value) == (truth["exit_code"] == 0)
    assert (truth["kind"] == Kind.INSUFFICIENT_EVIDENCE.value) == (truth["exit_code"] == 4)
    assert not set(truth["culprits"]) & set(truth["candidates"])
    assert set(truth["culprits"]) <= set(truth["victims_exclude"])


@every_recipe
def test_healthy_means_that_nothing_is_outstanding(recipe: Recipe) -> None:
    job = simulate(recipe)

    outstanding = [
        entry
        for dump in job.dumps.values()
        for entry in dump["entries"]
        if not entry["retired"] and not entry["is_p2p"]  # members of coalesced groups stay as they are
    ]

    assert (job.truth.kind is None) == (not outstanding)


def test_every_fault_has_a_near_miss_with_another_answer() -> None:
    near = {of for fault in SCENARIOS.values() for of in fault.near_miss_of}

    alone = [name for name, fault in SCENARIOS.items() if not fault.near_miss_of and name not in near | VARIANTS]

    assert alone == ["healthy"]
    assert near <= set(SCENARIOS)


def truth_in_short(name: str) -> tuple[object, ...]:
    """Without the ranks, which are drawn by lot."""
    truth = simulate(Recipe(fault=name, backend=SCENARIOS[name].backends[0], entries=80)).truth
    return truth.kind, truth.cause, bool(truth.culprits), truth.mismatch, truth.edit, truth.note


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_near_miss_differs_from_what_it_resembles(name: str) -> None:
    for miss in near_misses(name):
        assert truth_in_short(miss.name) != truth_in_short(name)


def digest(folder: Path) -> str:
    content = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        content.update(path.name.encode() + path.read_bytes())
    return content.hexdigest()


@pytest.mark.parametrize("is_json", [False, True])
def test_equal_recipes_give_equal_bytes_and_another_seed_does_not(tmp_path: Path, *, is_json: bool) -> None:
    digests = []
    for number, seed in enumerate((7, 7, 8)):
        recipe = Recipe(fault="missing-participant-lock", seed=seed, has_skew=True, is_json=is_json)
        write_job(simulate_anew(recipe), tmp_path / str(number))
        digests.append(digest(tmp_path / str(number)))

    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("rank_count", [2, 3, 6])
@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_small_jobs_are_simulated_or_refused_with_a_reason(name: str, rank_count: int) -> None:
    try:
        job = simulate(Recipe(fault=name, ranks=rank_count, entries=20))
    except InputError as refusal:
        assert str(refusal).startswith(name)  # noqa: PT017 - both outcomes are right
        return

    assert all(0 <= rank < rank_count for rank in (*job.truth.culprits, *job.truth.candidates))


def truth_of(fault: str, **options: object) -> Truth:
    return simulate(Recipe(fault=fault, **options)).truth  # type: ignore[arg-type]  # recipes check their own fields


def test_lost_dump_of_the_culprit_leaves_nobody_to_blame() -> None:
    culprit = truth_of("missing-participant").culprits[0]

    truth = truth_of("missing-participant", missing=(culprit,))

    assert (truth.kind, truth.culprits, truth.exit_code, truth.missing_files) == (Kind.INSUFFICIENT_EVIDENCE, (), 4, (culprit,))


def test_culprit_seen_by_its_stack_stays_one_without_its_dump() -> None:
    culprit = truth_of("missing-participant-checkpoint").culprits[0]

    truth = truth_of("missing-participant-checkpoint", missing=(culprit,))

    assert (truth.kind, truth.culprits) == (Kind.MISSING_PARTICIPANT, (culprit,))


def test_lost_dump_of_an_innocent_makes_it_honest_not_to_be_sure() -> None:
    seen = truth_of("desync-op")
    innocent = 0 if seen.culprits != (0,) else 1

    truth = truth_of("desync-op", missing=(innocent,))

    assert (truth.kind, truth.culprits) == (Kind.DESYNC, seen.culprits)
    assert truth.acceptable == (NOT_SURE, Answer(kind=Kind.DESYNC))


@pytest.mark.parametrize("options", [{"has_frames": False}, {"is_json": True}, {"is_active_only": True}])
def test_divergence_by_call_site_cannot_be_seen_without_frames_of_the_past(options: dict[str, bool]) -> None:
    truth = truth_of("desync-extra", **options)

    assert (truth.mismatch, truth.edit) == ("op", None)


def test_unknown_fault_is_refused() -> None:
    with pytest.raises(InputError, match="no fault 'gremlins'"):
        simulate(Recipe(fault="gremlins"))


def test_fault_of_another_back_end_is_refused() -> None:
    with pytest.raises(InputError, match="device-stuck does not occur with gloo"):
        simulate(Recipe(fault="device-stuck", backend="gloo"))
