"""Half of the ranks compute much longer than the others: no all-clear, and no culprit."""

import pytest

from pardbg.watchdog.graph.traced_rounds import SlowPart, find_slow_part
from pardbg.watchdog.model.step_trace import KernelTimes, StepTimes


def times(*computed_s: float, span_s: float = 0.05, steps: int = 4) -> dict[int, KernelTimes]:
    """Every rank waits in communication for whoever computes longest."""
    longest = max(computed_s)
    return {
        rank: KernelTimes(
            steps=tuple(
                StepTimes(
                    step=step,
                    span_s=span_s,
                    compute_s=seconds,
                    communication_s=longest - seconds + 0.002,
                    copying_s=0.0,
                    loading_s=0.0,
                )
                for step in range(steps)
            )
        )
        for rank, seconds in enumerate(computed_s)
    }


def test_ranks_above_the_one_clear_gap_are_the_slow_part() -> None:
    found = find_slow_part(times(0.01, 0.01, 0.04, 0.04))

    assert found is not None
    assert (found.ranks, found.others) == ((2, 3), (0, 1))
    assert found == SlowPart((2, 3), (0, 1), pytest.approx(0.04), pytest.approx(0.01), pytest.approx(0.6))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "seen",
    [
        times(0.01, 0.011, 0.012, 0.013),  # all alike
        times(0.01, 0.01, 0.04, 0.04, steps=2),  # too few steps
        times(0.01, 0.01, 0.04, 0.04, span_s=2.0),  # little of the time
        times(0.01),
        {},
    ],
)
def test_without_a_clear_gap_that_costs_time_there_is_none(seen: dict[int, KernelTimes]) -> None:
    assert find_slow_part(seen) is None
