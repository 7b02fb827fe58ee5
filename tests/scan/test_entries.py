"""What is not asked of recorders, and what is asked and does not come, is said."""

from functools import cache

import pytest

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.graph import differences
from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.scan import entries
from pardbg.watchdog.scan.entries import Question, add_entries, choose_entries
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.scenario import simulate
from pardbg.watchdog.store.view import EvidenceView
from tests.diagnosis.diagnosing import evidence_of
from tests.diagnosis.digesting import digest_evidence


@cache
def digests_of(fault: str) -> list[Evidence]:
    return digest_evidence(list(evidence_of(simulate(Recipe(fault=fault, ranks=32, entries=80)))))


def question_of(fault: str) -> Question:
    return choose_entries(Situation.of(EvidenceView.of(digests_of(fault))))


def absences(question: Question) -> list[tuple[int | None, AbsenceReason, str]]:
    view = EvidenceView.of(add_entries((), question, (), 0))
    return [(item.rank, item.observation.reason, item.observation.detail) for item in view.absences]  # type: ignore[union-attr]  # absences


def test_parts_that_are_too_many_to_be_asked_for_are_an_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert question_of("desync-extra").unasked == ()
    monkeypatch.setattr(differences, "MOST_WANTED", 1)
    question = question_of("desync-extra")
    assert len(question.differences) == 1
    assert question.unasked[0].endswith("more parts in which recorders differ were not asked for: 256 were")
    assert (None, AbsenceReason.SKIPPED, question.unasked[0]) in absences(question)


def test_ways_that_are_too_many_to_be_asked_for_are_an_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differences, "MOST_KINDS", 1)
    (told,) = question_of("desync-extra").unasked
    assert told.startswith("what rank")


def test_rings_that_are_too_many_to_be_asked_for_are_an_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "MOST_RINGS", 0)
    (told,) = question_of("p2p-deadlock").unasked
    assert told.startswith("the whole recorders of ranks")


def test_entries_that_do_not_come_are_an_unknown_of_the_rank_that_was_asked() -> None:
    question = question_of("desync-extra")
    asked = sorted({wanted.rank for wanted in question.wanted})
    assert asked
    lost = "entries of its recorder that were asked for did not come"
    assert absences(question)[: len(asked)] == [(rank, AbsenceReason.LOST, lost) for rank in asked]
