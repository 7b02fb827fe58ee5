"""Nothing of the probe raises into training, and nothing of training is lost in the probe."""

import signal
from types import FrameType

import pytest

from pardbg.collectors.probe import harmless
from pardbg.collectors.probe.harmless import note


@pytest.fixture(autouse=True)
def problems(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(harmless, "problems", found)
    return found


def divide(by: int) -> float:
    return 1 / by


def test_an_error_becomes_none_and_is_noted(problems: list[str]) -> None:
    assert harmless.harmless(divide)(2) == 0.5
    assert harmless.harmless(divide)(0) is None
    assert problems == ["divide: ZeroDivisionError: division by zero"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_error_goes_through(error: type[BaseException]) -> None:
    def leave() -> None:
        raise error

    with pytest.raises(error):
        harmless.harmless(leave)()


def test_what_a_signal_handler_of_the_user_raises_goes_through(problems: list[str]) -> None:
    """A time limit or a preemption may come while a hook of the probe runs."""

    def too_late(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError("too late")

    def hook() -> None:
        signal.raise_signal(signal.SIGUSR1)
        for _ in range(100):
            pass

    before = signal.signal(signal.SIGUSR1, too_late)
    try:
        with pytest.raises(TimeoutError, match="too late"):
            harmless.harmless(hook)()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert problems == []


def test_problems_are_few_and_short(problems: list[str]) -> None:
    for number in range(100):
        note(f"{number} " + "x" * 1000)
    assert len(problems) == 16
    assert max(map(len, problems)) == 300
