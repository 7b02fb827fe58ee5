"""The one broad catch of the probe: nothing of it ever raises into training.

Nothing is imported here before it is needed: every Python that starts with RANK loads this file.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

problems: list[str] = []
"""What has failed, in words, the first few: `rank.json` and the tests say it. Nobody else is told."""

_MOST = 16


def harmless(function: Callable[P, R]) -> Callable[P, R | None]:
    """The function, which now answers None where it would raise.

    What one of the user's signal handlers raises while we run is the user's, and goes through.
    """

    def guarded(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if _is_of_a_handler(error.__traceback__):
                raise
            note(f"{getattr(function, '__name__', function)}: {type(error).__name__}: {error}")
            return None

    return guarded


def _is_of_a_handler(trace: TracebackType | None) -> bool:
    import signal  # noqa: PLC0415 - see above

    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = {getattr(handler, "__code__", None) for handler in handlers} - {None}
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def note(problem: str) -> None:
    """Keeps a problem for `rank.json`."""
    if len(problems) < _MOST:
        problems.append(problem[:300])
