"""The one broad catch of the probe: nothing of it ever raises into training."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

problems: list[str] = []
"""What has failed, in words, the first few: `rank.json` and the tests say it. Nobody else is told."""

_MOST = 16


def harmless(function: Callable[P, R]) -> Callable[P, R | None]:
    """The function, which now answers None where it would raise."""

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - see above
            note(f"{function.__name__}: {type(error).__name__}: {error}")
            return None

    return guarded


def note(problem: str) -> None:
    """Keeps a problem for `rank.json`."""
    if len(problems) < _MOST:
        problems.append(problem[:300])
