"""What a verdict must not depend on: the order in which evidence is read, and the order of equals."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.outputs.as_json import render_json
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.scenario import SCENARIOS, simulate
from pardbg.watchdog.store.view import EvidenceView
from tests.diagnosis.diagnosing import WHEN, diagnose, evidence_of

FAULTS = sorted(SCENARIOS)


def report_of(recipe: Recipe, seed: int) -> str:
    """The whole report as JSON, from evidence shuffled by ``seed``."""
    evidence = list(evidence_of(simulate(recipe)))
    random.Random(seed).shuffle(evidence)
    return render_json(judge(EvidenceView.of(evidence), Circumstances(decided_at=WHEN)))


def backend_of(fault: str) -> str:
    return SCENARIOS[fault].backends[0]


@settings(max_examples=25, deadline=None)
@given(fault=st.sampled_from(FAULTS), seed=st.integers(0, 2**16))
def test_report_does_not_depend_on_which_rank_is_read_first(fault: str, seed: int) -> None:
    recipe = Recipe(fault=fault, backend=backend_of(fault), entries=30)
    assert report_of(recipe, seed) == report_of(recipe, seed + 1)


@settings(max_examples=15, deadline=None)
@given(fault=st.sampled_from(FAULTS), seed=st.integers(0, 2**16))
def test_report_does_not_depend_on_the_order_of_groups_and_counters_in_a_dump(fault: str, seed: int) -> None:
    recipe = Recipe(fault=fault, backend=backend_of(fault), entries=30)
    straight = simulate(recipe)
    shuffled = simulate(recipe)
    order = random.Random(seed)
    for dump in shuffled.dumps.values():
        for key in ("pg_config", "pg_status"):
            items = list(dump[key].items())
            order.shuffle(items)
            dump[key] = dict(items)
    reports = [
        render_json(judge(EvidenceView.of(evidence_of(job)), Circumstances(decided_at=WHEN))) for job in (straight, shuffled)
    ]
    assert reports[0] == reports[1]


@settings(max_examples=12, deadline=None)
@given(fault=st.sampled_from(FAULTS), seed=st.integers(0, 2**16))
def test_clocks_of_hosts_do_not_change_who_is_to_blame(fault: str, seed: int) -> None:
    recipe = Recipe(fault=fault, backend=backend_of(fault), entries=30)
    job = simulate(recipe)
    order = random.Random(seed)
    for dump in job.dumps.values():
        error_ns = order.randrange(-5_000_000_000, 5_000_000_000)
        for entry in dump.get("entries", []):
            entry["time_created_ns"] += error_ns
            if entry.get("time_discovered_completed_ns"):
                entry["time_discovered_completed_ns"] += error_ns
    skewed = judge(EvidenceView.of(evidence_of(job)), Circumstances(decided_at=WHEN))
    plain = diagnose(recipe)[0]
    blamed = [
        sorted((finding.kind, [subject.rank for subject in finding.culprits]) for finding in report.findings)
        for report in (plain, skewed)
    ]
    assert blamed[0] == blamed[1]


@pytest.mark.parametrize("fault", ["missing-participant", "desync-op", "order-inversion", "device-stuck"])
def test_same_evidence_gives_the_same_bytes(fault: str) -> None:
    recipe = Recipe(fault=fault, entries=30)
    assert report_of(recipe, 0) == report_of(recipe, 0)
