"""With which code a program really ends: `sys.exit` only raises an exception, which may be caught.

The exception that reaches the end of the program is dropped when no Python frame of its thread is left; one that was caught
is dropped by whoever caught it. So the exception itself can tell.
"""

import sys
from collections.abc import Callable

Learner = Callable[[object], None]


class _Exit(SystemExit):
    """A `SystemExit` in all that programs see of it."""

    learn: Learner | None = None

    def __reduce__(self) -> tuple[type[SystemExit], tuple[object, ...]]:
        """As what it stands for."""
        return SystemExit, self.args

    def __del__(self) -> None:
        """Tells, if nobody has caught it."""
        try:
            sys._getframe(1)  # noqa: SLF001 - the only way to ask
        except ValueError:  # there is no frame below
            if self.learn is not None:
                self.learn(self.code)


_Exit.__name__ = _Exit.__qualname__ = SystemExit.__name__
_Exit.__module__ = SystemExit.__module__


def make_exit(learn: Learner, status: object) -> SystemExit:
    """What `sys.exit` raises; ``learn`` hears of the status if the program ends by it."""
    error = _Exit() if status is None else _Exit(status)
    error.learn = learn
    return error
