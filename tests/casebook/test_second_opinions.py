"""What a second reader thought otherwise is kept with its case."""

from pardbg.watchdog.sim.casebook.families import FAMILIES
from pardbg.watchdog.sim.casebook.second_opinions import SECOND_OPINIONS


def test_every_second_opinion_is_of_a_case_and_is_discussed() -> None:
    cases = {f"{family.number}/{variant.name}" for family in FAMILIES for variant in family.variants}
    told = [opinion.case for opinion in SECOND_OPINIONS]

    assert set(told) <= cases
    assert len(told) == len(set(told)) == 29
    assert all(opinion.discussion for opinion in SECOND_OPINIONS)
