"""A rule that can be broken without any scenario noticing is not tested."""

import pytest

from pardbg.watchdog.bench.objections import objections
from tests.diagnosis.diagnosing import diagnose
from tests.diagnosis.mutants import MUTANTS, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.rule for mutant in MUTANTS])
def test_breaking_a_rule_changes_a_verdict(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    assert objections(*diagnose(mutant.shown_by)) == []
    for change in mutant.changes:
        monkeypatch.setattr(change.owner, change.attribute, change.replacement)
    assert objections(*diagnose(mutant.shown_by)) != []


def test_at_least_fifteen_rules_are_guarded() -> None:
    assert len({mutant.rule for mutant in MUTANTS}) >= 15
