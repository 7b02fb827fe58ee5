"""Dead experts, hot ranks and drops: loads that lack one sign of an illness. Each comes of a mutant that lived."""

from collections.abc import Callable, Iterable

import pytest

from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.routing.dead_experts import DeadExpertsWatch
from pardbg.watchdog.routing.drop_spike import DropWatch

from .making import fed, found, row, with_drops

Ratio = Callable[[int], float]
EP_SIZE = 4


def hot(ratio: float, *, single: bool = False) -> tuple[int, ...]:
    """Eight experts on four ranks: those of the first, or only one of them, make its load so many times the mean."""
    of_first, of_others = 100_000 * ratio, 100_000 * (EP_SIZE - ratio) / 6
    experts = (of_first - of_others, of_others) if single else (of_first / 2, of_first / 2)
    return tuple(map(round, (*experts, *[of_others] * 6)))


def kinds(loads: Iterable[tuple[int, ...]]) -> set[Kind]:
    return set(found(fed([row(step, counts=counts, ep_size=EP_SIZE) for step, counts in enumerate(loads)])))


@pytest.mark.parametrize(
    ("ratio", "count", "is_told"),
    [
        pytest.param(lambda _: 1.7, 60, True, id="hot all along"),
        pytest.param(lambda step: 3.0 if step % 4 == 0 else 1.2, 80, False, id="bursts"),
        pytest.param(lambda step: 2.4 if step % 2 else 1.0, 80, False, id="every other row"),
        pytest.param(lambda step: 1 + 1.2 * 0.985**step, 80, False, id="gets better"),
        pytest.param(lambda _: 1.3, 60, False, id="less hot, not for long"),
        pytest.param(lambda _: 1.3, 140, True, id="less hot, for long"),
        pytest.param(lambda step: 1.0 if step < 80 else 1.4, 140, True, id="less hot, after an even past"),
    ],
)
def test_rank_is_hot_that_is_so_in_every_row_for_long_enough(ratio: Ratio, count: int, is_told: bool) -> None:  # noqa: FBT001
    assert (Kind.EP_IMBALANCE in kinds(hot(ratio(step)) for step in range(count))) is is_told


def test_expert_that_is_hot_on_any_rank_is_no_matter_of_the_placement() -> None:
    assert Kind.EP_IMBALANCE not in kinds(hot(1.7, single=True) for _ in range(60))


def test_expert_with_next_to_nothing_is_dead_and_one_that_few_tokens_miss_is_not() -> None:
    assert Kind.DEAD_EXPERTS in kinds([(5000,) * 7 + (3,)] * 40)
    assert Kind.DEAD_EXPERTS not in kinds([(1,) * 7 + (0,)] * 40)


def test_silence_from_before_a_restart_does_not_count() -> None:
    watch = DeadExpertsWatch(0)
    for step in range(30):
        if step == 15:
            watch.restart()
        watch.feed(step, (100,) * 7 + (0,), 87.5)
    assert watch.alarm.illness is None


@pytest.mark.parametrize(
    "ratios",
    [
        pytest.param([0.0] * 80 + [0.08] * 80, id="more than before, but not much more than chance"),
        pytest.param([0.95 * 0.985**step for step in range(60)], id="enormous, and getting better"),
    ],
)
def test_drops_that_need_not_matter_are_not_told(ratios: list[float]) -> None:
    assert found(fed(with_drops(ratios))) == {}


def test_experts_that_balancing_brings_back_are_not_told_as_dead() -> None:
    """Two of three get tokens again just before the third would be told; without their return it is told."""

    def dead_after(back: int) -> bool:
        watch = DeadExpertsWatch(0)
        for step in range(22):
            watch.feed(step, (100,) * 5 + ((100, 100, 0) if step >= back else (0, 0, 0)), 87.5)
            if step < back:
                watch.alarm.end(step)  # whatever was told of all three
        return watch.alarm.illness is not None

    assert dead_after(back=21) is False
    assert dead_after(back=10) is True


def test_experts_that_came_back_long_ago_excuse_no_dead_one() -> None:
    watch = DeadExpertsWatch(0)
    for step in range(90):
        watch.feed(step, (100,) * 6 + (0 if step < 25 else 100, 100 if step < 60 else 0), 87.5)
    assert watch.alarm.illness is not None
    assert watch.alarm.illness.experts == (7,)


def told_drops(ratios: list[float], restart_at: int | None = None) -> bool:
    watch = DropWatch(0)
    for step, ratio in enumerate(ratios):
        if step == restart_at:
            watch.restart()
        watch.feed(step, ratio, 512.0, learn=True)
    return watch.alarm.illness is not None


def test_drops_after_a_restart_are_a_new_beginning() -> None:
    ratios = [0.01] * 40 + [0.4 * 0.95**step for step in range(12)]
    assert told_drops(ratios) is True
    assert told_drops(ratios, restart_at=40) is False
    assert told_drops([0.01] * 40 + [0.9] * 9, restart_at=40) is False  # nine steps are no past


def test_a_long_illness_does_not_become_what_is_usual() -> None:
    """Its second time is told as its first one was."""
    assert told_drops([0.01] * 40 + [0.4] * 200 + [0.01] * 20 + [0.25] * 4) is True
