"""Steps are counted on the page: those of the first optimizer that lives."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pardbg.collectors.probe.page import Page
from pardbg.collectors.probe.page_format import StepRecord, decode_record
from pardbg.collectors.probe.steps import Ledger, Steps


class Optimizer:
    """Stands in for torch's: only its identity matters."""


Reader = Callable[[], StepRecord | None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "page"


@pytest.fixture
def read(path: Path) -> Reader:
    def reader() -> StepRecord | None:
        record = decode_record(StepRecord, path.read_bytes())
        assert record is None or isinstance(record, StepRecord)
        return record

    return reader


def test_steps_are_counted_with_their_times_and_our_own(path: Path, read: Reader) -> None:
    told: list[int] = []
    steps = Steps(Page(str(path)), Ledger(), [1], ["evaluation"])
    steps.end_evaluation = lambda: told.append(1)
    after_step = steps.make_hook(lambda: False)
    optimizer = Optimizer()
    for _ in range(3):
        after_step(optimizer, (), {})
    record = read()
    assert record is not None
    assert (record.step, record.hook_count, len(told)) == (3, 2, 3)
    assert 0 < record.last_ns <= record.longest_ns
    assert record.own_ns > 0


def test_of_several_optimizers_the_first_counts_until_it_is_gone(path: Path, read: Reader) -> None:
    after_step = Steps(Page(str(path)), Ledger(), [1]).make_hook(lambda: False)
    first, second = Optimizer(), Optimizer()
    for optimizer in (first, second, first, second):
        after_step(optimizer, (), {})
    record = read()
    assert record is not None
    assert record.step == 2
    del first, optimizer
    after_step(second, (), {})
    record = read()
    assert record is not None
    assert record.step == 3


def test_a_forked_child_counts_nothing(path: Path, read: Reader) -> None:
    after_step = Steps(Page(str(path)), Ledger(), []).make_hook(lambda: False)
    after_step(Optimizer(), (), {})
    assert read() is None


def test_a_step_that_is_being_compiled_holds_nothing_of_ours(path: Path, read: Reader) -> None:
    after_step = Steps(Page(str(path)), Ledger(), [1]).make_hook(lambda: True)
    after_step(Optimizer(), (), {})
    assert read() is None
