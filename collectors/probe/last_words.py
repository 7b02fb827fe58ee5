"""What a rank says when it ends: how, with which exception, raised where, and what its recorder held.

Python's own ends go through `sys.excepthook`, `sys.exit`, `os._exit` and `atexit`. Signals go through `faulthandler`, which
writes all stacks from C and then lets the signal do what it would have done: same exit status, no Python needed. SIGKILL
leaves no word, and that is told from its absence. Nothing here takes longer than the dump of the recorder, 0.3 s for 20,000
operations.
"""

import atexit
import functools
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn

from .harmless import harmless
from .page import Page
from .page_format import END_AT_ONCE, END_EXCEPTION, END_RETURNED, EndingRecord

_LIBRARIES = ("site-packages", "dist-packages", "<", os.path.dirname(os.__file__))
_MOST_TEXT, _MOST_WHERE = 1000, 500


class LastWords:
    """Notes the end of this process in its page, and keeps its recorder before that."""

    def __init__(
        self, page: Page, is_ours: Callable[[], bool], keep: Callable[[int], None], count_oom_kills: Callable[[], int | None]
    ) -> None:
        self._page = page
        self._is_ours = is_ours
        self._keep = harmless(keep)
        self._count_oom_kills = count_oom_kills
        self._exit_code = 0
        self._is_said = False
        self._note_exception = harmless(self._say_exception)
        self._note_exit = harmless(self._say_exit)

    def listen(self) -> None:
        """Hears of every end that Python knows of."""
        self._wrap_excepthook()
        self._wrap_exits()
        atexit.register(harmless(self._at_exit))

    def _wrap_excepthook(self) -> None:
        former = sys.excepthook

        def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            self._note_exception(error, trace)
            former(kind, error, trace)

        sys.excepthook = excepthook

    def _wrap_exits(self) -> None:
        leave, leave_at_once = sys.exit, os._exit

        @functools.wraps(leave)  # by their names and modules pickle finds them
        def exit(status: Any = None, /) -> NoReturn:  # noqa: A001 - its name in a traceback
            if threading.current_thread() is threading.main_thread():  # in others it ends only these
                self._exit_code = status & 0xFF if isinstance(status, int) else 0 if status is None else 1
            leave(status)

        @functools.wraps(leave_at_once)
        def _exit(status: int) -> NoReturn:
            self._note_exit(END_AT_ONCE, status)
            leave_at_once(status)

        _exit.__module__ = os.__name__
        sys.exit = exit
        os._exit = _exit

    def _at_exit(self) -> None:
        """Somebody else may have taken the place of `sys.excepthook`: the interpreter itself keeps the last exception."""
        error = getattr(sys, "last_value", None)
        if isinstance(error, BaseException) and not isinstance(error, SystemExit):
            self._say_exception(error, error.__traceback__)
        else:
            self._say_exit(END_RETURNED, self._exit_code)

    def _say_exception(self, error: BaseException, trace: TracebackType | None) -> None:
        if self._is_said or not self._is_ours():
            return
        text = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()
        code = -1 if isinstance(error, KeyboardInterrupt) else 1  # Python ends by SIGINT then
        self._say(END_EXCEPTION, code, _where(trace), text[0] if text else type(error).__name__)

    def _say_exit(self, kind: int, code: int) -> None:
        if not self._is_said and self._is_ours():
            self._say(kind, code, "", "")

    def _say(self, kind: int, code: int, where: str, text: str) -> None:
        """The word first: keeping the recorder takes longer, and somebody may kill us meanwhile."""
        self._is_said = True
        oom_kills = self._count_oom_kills()
        self._page.write(
            EndingRecord,
            time.time_ns(),
            kind,
            code if -(2**31) <= code < 2**31 else -1,
            -1 if oom_kills is None else oom_kills,
            where.encode(errors="replace")[:_MOST_WHERE],
            text.encode(errors="replace")[:_MOST_TEXT],
        )
        self._keep(kind)


def _where(trace: TracebackType | None) -> str:
    """The innermost line of the training code; of a library, if nothing else is there."""
    frames = traceback.extract_tb(trace)
    own = [frame for frame in frames if not any(part in frame.filename for part in _LIBRARIES)]
    frame = next(reversed(own or list(frames)), None)
    return f"{frame.filename}:{frame.lineno} {frame.name}" if frame is not None else ""
