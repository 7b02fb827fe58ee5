"""Every case of the casebook, from its files to the verdict."""

import re

import pytest

from pardbg.watchdog.bench.objections import objections_to_case
from pardbg.watchdog.bench.reading_files import diagnose_files
from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.sim.casebook.case import Role
from pardbg.watchdog.sim.casebook.families import FAMILIES, Instance, instances
from tests.casebook.disputed import NOT_YET

SEEDS = 20  # of each variant in `make test-all`; half of them held out
MOST_WORDS = 110
VERDICTS = re.compile("|".join(kind.value for kind in Kind) + r"|culprit|guilty|to blame", re.IGNORECASE)
# What the casebook has besides experts (H but C92) and what other tests cover.
NUMBERS = {
    *("C01", "C02", "C04", "C05", "C07", "C08", "C10", "C11", "C13", "C14", "C16", "C17", "C19", "C20"),
    *("C22", "C23", "C25", "C26", "C28", "C29", "C31", "C32", "C34", "C35", "C37", "C38", "C40", "C41"),
    *("C43", "C44", "C46", "C47", "C49", "C50", "C52", "C53", "C55", "C56", "C58", "C59", "C61", "C62"),
    *("C76", "C77", "C79", "C80", "C82", "C83", "C85", "C86"),
    *("C64", "C65", "C67", "C68", "C70", "C71", "C73", "C74", "C92", *(f"C{number}" for number in range(97, 112))),
}


def check(instance: Instance) -> None:
    case = instance.build()
    assert objections_to_case(diagnose_files(case.files), case) == [], case.scenario


def named(instance: Instance) -> object:
    key = f"{instance.family.number}/{instance.variant.name}"
    marks = [pytest.mark.xfail(reason=NOT_YET[key], strict=True)] if key in NOT_YET else []
    return pytest.param(instance, id=instance.name, marks=marks)


@pytest.mark.parametrize("instance", list(map(named, instances(range(1)))))
def test_verdict_is_the_known_answer(instance: Instance) -> None:
    check(instance)


@pytest.mark.slow
@pytest.mark.parametrize("instance", list(map(named, instances(range(1, SEEDS)))))
def test_verdict_is_the_known_answer_whichever_ranks_and_sizes(instance: Instance) -> None:
    check(instance)


def test_every_entry_of_the_casebook_is_there_and_has_a_sharp_counterpart() -> None:
    assert {family.number for family in FAMILIES} == NUMBERS
    assert [family.number for family in FAMILIES if not {v.role for v in family.variants} - {Role.REPORTED}] == []


def test_equal_instances_are_equal_to_the_byte_and_other_seeds_differ() -> None:
    several = (list(instances(range(seed, seed + 1)))[::5] for seed in (4, 4, 5))
    for first, second, other in zip(*several, strict=True):
        assert first.build() == second.build()
        assert first.build().files != other.build().files or len(first.build().files) < 3, first.name


def test_scenario_tells_what_is_known_and_no_verdict() -> None:
    for instance in instances(range(1)):
        scenario = instance.build().scenario
        assert scenario.endswith("."), instance.name
        assert len(scenario.split()) <= MOST_WORDS, instance.name
        assert VERDICTS.findall(scenario) == [], instance.name
