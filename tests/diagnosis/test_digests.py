"""Over digests, and the few entries that are asked for after them, the verdict is that over whole rings."""

import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence, FlightRecording
from pardbg.watchdog.model.names import Edit
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.outputs.as_json import render_json
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.scenario import SCENARIOS, simulate
from pardbg.watchdog.store.view import EvidenceView
from tests.diagnosis.diagnosing import WHEN, evidence_of
from tests.diagnosis.digesting import digest_evidence, through_digests

CASES = [(name, backend) for name, fault in SCENARIOS.items() for backend in fault.backends]


def report_of(evidence: Iterable[Evidence]) -> Report:
    return judge(EvidenceView.of(evidence), Circumstances(decided_at=WHEN))


def facts(report: Report) -> list[object]:
    """All that a digest must not change: who, what, where, since when, and who waits."""
    told: list[object] = [report.status]
    for finding in (*report.findings, *report.set_aside):
        blamed = [[subject.rank for subject in named] for named in (finding.culprits, finding.candidates, finding.waiting_for)]
        divergence = finding.first_divergence
        sides = [(side.ranks, side.op, side.where) for side in divergence.sides] if divergence else []
        told.append((finding.kind, finding.cause, finding.confidence, blamed, finding.victims, finding.claim))
        told.append(
            (finding.mismatch, finding.edit, finding.collective, divergence and (divergence.group, divergence.seq), sides)
        )
    return told


def check(recipe: Recipe) -> None:
    evidence = list(evidence_of(simulate(recipe)))
    assert facts(report_of(through_digests(evidence))) == facts(report_of(evidence))


@pytest.mark.parametrize(("fault", "backend"), CASES)
def test_digests_of_16_ranks_say_what_whole_rings_say(fault: str, backend: str) -> None:
    check(Recipe(fault=fault, backend=backend))
    check(Recipe(fault=fault, backend=backend, entries=600, has_skew=True))


@pytest.mark.parametrize(("fault", "backend"), CASES)
def test_digests_of_64_ranks_say_what_whole_rings_say(fault: str, backend: str) -> None:
    check(Recipe(fault=fault, backend=backend, ranks=64, entries=60))


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "backend"), CASES)
def test_digests_of_512_ranks_say_what_whole_rings_say(fault: str, backend: str) -> None:
    check(Recipe(fault=fault, backend=backend, ranks=512, entries=100))


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "backend"), CASES)
@pytest.mark.parametrize("variant", ["is_json", "is_active_only", "has_skew"])
def test_digests_of_any_form_of_dump_say_what_whole_rings_say(fault: str, backend: str, variant: str) -> None:
    check(replace(Recipe(fault=fault, backend=backend, entries=300), **{variant: True}))


def test_earlier_divergence_is_found_by_the_entries_that_are_asked_for_only() -> None:
    evidence = list(evidence_of(simulate(Recipe(fault="desync-extra", entries=200))))
    with_entries, without = report_of(through_digests(evidence)), report_of(digest_evidence(evidence))
    assert with_entries.verdict is not None
    assert with_entries.verdict.edit is Edit.EXTRA
    assert facts(with_entries) == facts(report_of(evidence))
    assert facts(without) != facts(with_entries)


def test_entries_are_asked_of_few_ranks_however_many_there_are() -> None:
    evidence = list(evidence_of(simulate(Recipe(fault="branch-call-sites-missing", ranks=128, entries=60))))
    added = through_digests(evidence)[len(evidence) :]
    lenders = {item.rank for item in added}
    assert added
    assert len(lenders) <= 16


@settings(max_examples=12, deadline=None)
@given(fault=st.sampled_from(sorted(SCENARIOS)), seed=st.integers(0, 2**16))
def test_report_does_not_depend_on_which_node_answers_first(fault: str, seed: int) -> None:
    recipe = Recipe(fault=fault, backend=SCENARIOS[fault].backends[0], ranks=32, entries=80)
    evidence = list(evidence_of(simulate(recipe)))
    shuffled = evidence.copy()
    random.Random(seed).shuffle(shuffled)
    reports = [render_json(report_of(through_digests(order))) for order in (evidence, shuffled)]
    assert reports[0] == reports[1]


def test_two_samples_of_a_job_that_stands_still_show_no_motion_though_a_digest_leaves_out_what_is_queued() -> None:
    evidence = digest_evidence(list(evidence_of(simulate(Recipe(fault="missing-participant", entries=600)))))
    later = [
        replace(item, observation=replace(item.observation, sample=1))
        for item in evidence
        if isinstance(item.observation, FlightRecording)
    ]
    report = report_of([*evidence, *later])
    assert report.verdict is not None
    assert report.verdict.kind.value == "missing-participant"
