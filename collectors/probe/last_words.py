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
from typing import Any, NamedTuple, NoReturn

from .exit_code import make_exit
from .harmless import harmless
from .page import Page
from .page_format import END_AT_ONCE, END_EXCEPTION, END_RETURNED, EndingRecord

_LIBRARIES = ("site-packages", "dist-packages", "<", os.path.dirname(os.__file__))
_MOST_TEXT, _MOST_WHERE, _MOST_LINE = 1000, 500, 4000
_LONGEST_CHAIN = 20


class LastWords:
    """Notes the end of this process in its page, and keeps its recorder before that."""

    def __init__(
        self,
        page: Page,
        is_ours: Callable[[], bool],
        keep: Callable[[int, str], None],
        count_oom_kills: Callable[[], int | None],
    ) -> None:
        """``keep`` gets the kind of the end and, where Ctrl-C interrupted the program, the stack of that moment."""
        self._page = page
        self._is_ours = is_ours
        self._keep = harmless(keep)
        self._count_oom_kills = count_oom_kills
        self._exit_code = 0
        self._is_said = False
        self._note_exception = harmless(self._say_exception)
        self._handled: Told | None = None
        self._note_at_once = harmless(self._say_at_once)
        self._describe_handled = harmless(_tell_handled)

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
            is_plain = not isinstance(status, BaseException | tuple)
            if is_plain and threading.current_thread() is threading.main_thread():  # in others it ends only these
                handled = self._describe_handled()
                raise make_exit(lambda code: self._learn_code(code, handled), status)
            leave(status)

        @functools.wraps(leave_at_once)
        def _exit(status: int) -> NoReturn:
            self._note_at_once(status)
            leave_at_once(status)

        _exit.__module__ = os.__name__
        sys.exit = exit
        os._exit = _exit

    def _learn_code(self, status: object, handled: "Told | None") -> None:
        self._exit_code = status & 0xFF if isinstance(status, int) else 0 if status is None else 1
        self._handled = handled

    def _at_exit(self) -> None:
        """Somebody else may have taken the place of `sys.excepthook`: the interpreter itself keeps the last exception."""
        error = getattr(sys, "last_value", None)
        if isinstance(error, BaseException) and not isinstance(error, SystemExit):
            self._say_exception(error, error.__traceback__)
        else:
            self._say_exit(END_RETURNED, self._exit_code, self._handled)

    def _say_at_once(self, status: int) -> None:
        self._say_exit(END_AT_ONCE, status, _tell_handled())

    def _say_exception(self, error: BaseException, trace: TracebackType | None) -> None:
        if not self._is_said and self._is_ours():
            told = _tell(error, trace)
            self._say(END_EXCEPTION, -1 if told.stack else 1, told)  # Python ends by SIGINT after Ctrl-C

    def _say_exit(self, kind: int, code: int, handled: "Told | None") -> None:
        """A program that exits with an error because of an exception has ended by that."""
        if self._is_said or not self._is_ours():
            return
        if handled is not None and code != 0:
            self._say(END_EXCEPTION, code, handled)
        else:
            self._say(kind, code, Told("", "", ""))

    def _say(self, kind: int, code: int, told: "Told") -> None:
        """The word first: keeping the recorder takes longer, and somebody may kill us meanwhile."""
        self._is_said = True
        oom_kills = self._count_oom_kills()
        self._page.write(
            EndingRecord,
            time.time_ns(),
            kind,
            code if -(2**31) <= code < 2**31 else -1,
            -1 if oom_kills is None else oom_kills,
            told.where.encode(errors="replace")[:_MOST_WHERE],
            told.text.encode(errors="replace")[:_MOST_TEXT],
        )
        self._keep(kind, told.stack)


class Told(NamedTuple):
    """An exception in words: its first line, where it was raised, and for Ctrl-C the stack of that moment."""

    text: str
    where: str
    stack: str


def _tell_handled() -> Told | None:
    """The exception that is being handled at this moment, None if there is none."""
    error = sys.exc_info()[1]
    is_error = error is not None and not isinstance(error, SystemExit | GeneratorExit | StopIteration)
    return _tell(error, error.__traceback__) if is_error and error is not None else None


def _tell(error: BaseException, trace: TracebackType | None) -> Told:
    """The first of a chain of exceptions is the one that counts: the others came of it."""
    from .secrets import hide_secrets  # noqa: PLC0415 - not needed before

    first = error
    for _ in range(_LONGEST_CHAIN):
        before = first.__cause__ or (None if first.__suppress_context__ else first.__context__)
        if before is None or isinstance(before, SystemExit | GeneratorExit | StopIteration):
            break
        first = before
    lines = "".join(traceback.format_exception_only(type(first), first)).strip().splitlines()
    text = hide_secrets(lines[0][:_MOST_LINE]) if lines else type(first).__name__
    where = _where(trace if first is error else first.__traceback__)
    return Told(text, where, _stack(trace) if isinstance(error, KeyboardInterrupt) else "")


def _where(trace: TracebackType | None) -> str:
    """The innermost line of the training code; of a library, if nothing else is there."""
    frames = traceback.extract_tb(trace)
    own = [frame for frame in frames if not any(part in frame.filename for part in _LIBRARIES)]
    frame = next(reversed(own or list(frames)), None)
    return f"{frame.filename}:{frame.lineno} {frame.name}" if frame is not None else ""


def _stack(trace: TracebackType | None) -> str:
    """Where the program was interrupted, in the form of faulthandler, innermost first."""
    frames = reversed(traceback.extract_tb(trace))
    lines = "".join(f'  File "{frame.filename}", line {frame.lineno} in {frame.name}\n' for frame in frames)
    return f"Current thread 0x{threading.get_ident():016x} (most recent call first):\n{lines}"
