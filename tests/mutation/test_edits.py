"""Breaking a rule makes one of its tests fail: `make mutants`. That the edits still fit the source is looked at each time."""

import ast
import re

import pytest

from tests.casebook.rules import RULES
from tests.mutation.edit import ROOT, Edit
from tests.mutation.hangs import HANGS
from tests.mutation.hardware import HARDWARE
from tests.mutation.layout import LAYOUTS
from tests.mutation.logs import LOGS
from tests.mutation.replicas import REPLICAS
from tests.mutation.routing import ROUTING
from tests.mutation.stragglers import STRAGGLERS
from tests.mutation.tree import FAILED, PASSED, Tree

EDITS = (
    *(edit for rule in RULES for edit in rule.broken_by),
    *LOGS,
    *HARDWARE,
    *STRAGGLERS,
    *ROUTING,
    *HANGS,
    *LAYOUTS,
    *REPLICAS,
)
NAME = re.compile(r"^def (test_\w+)", re.MULTILINE)


def test_every_edit_still_fits_its_source_and_leaves_python() -> None:
    sources = {edit.file: (ROOT / edit.file).read_text(encoding="utf-8") for edit in EDITS}
    assert [edit.rule for edit in EDITS if sources[edit.file].count(edit.before) != 1] == []
    assert [edit.rule for edit in EDITS if edit.before == edit.after] == []
    for edit in EDITS:
        ast.parse(edit.apply(sources[edit.file]), filename=edit.rule)


def test_every_test_that_holds_a_rule_is_there() -> None:
    files = {test.partition("::")[0] for edit in EDITS for test in edit.held_by}
    known = {f"{file}::{name}" for file in files for name in NAME.findall((ROOT / file).read_text(encoding="utf-8"))}
    assert {test.partition("[")[0] for edit in EDITS for test in edit.held_by} - known == set()


def test_every_rule_has_one_name_and_a_test() -> None:
    rules = [edit.rule for edit in EDITS]
    assert sorted(set(rules)) == sorted(rules)
    assert [edit.rule for edit in EDITS if not edit.held_by] == []


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy in which all of these tests pass as long as nothing is broken."""
    copy = Tree(tmp_path_factory.mktemp("tree"))
    code, words = copy.run(sorted({test for edit in EDITS for test in edit.held_by}))
    assert code == PASSED, words
    return copy


@pytest.mark.slow
@pytest.mark.parametrize("edit", EDITS, ids=[edit.rule for edit in EDITS])
def test_without_a_rule_one_of_its_tests_fails(edit: Edit, tree: Tree) -> None:
    with tree.without(edit):
        code, words = tree.run(edit.held_by)
    assert code == FAILED, words
