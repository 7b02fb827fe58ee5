"""Where a level rises to a higher one."""

import pytest

from pardbg.watchdog.routing.step_up import StepUp, find_step_up


def test_rise_from_one_level_to_another_is_found_where_it_is() -> None:
    assert find_step_up([1.25] * 60 + [1.5] * 40) == StepUp(60, 1.25, 1.5)


@pytest.mark.parametrize(
    "values",
    [
        [1.5] * 100,
        [1.6] * 60 + [1.35] * 40,
        [1.35] * 90 + [1.6] * 10,
        [1.2, 1.7] * 50,
        [1.5] * 20,
    ],
    ids=["level", "fall", "short", "swings", "few"],
)  # fmt: skip
def test_what_stays_falls_swings_or_is_short_is_no_rise(values: list[float]) -> None:
    assert find_step_up(values) is None
