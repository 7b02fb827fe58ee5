"""Notes what the rank does beside plain training: a checkpoint, an evaluation, a compilation. Only its main thread counts.

Cost: about 3 us at the begin and at the end of each. The wrappers hand everything through and add one frame to the stack.
"""

import functools
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from .harmless import harmless
from .page import Page
from .page_format import PhaseRecord
from .steps import Ledger

CHECKPOINT, COMPILE, EVALUATION = b"checkpoint", b"compile", b"evaluation"
_NOTHING = (b"", 0)
_MOST = 100
_TOLD = 2  # phases nested deeper say nothing new


class Phases:
    """The phases that the rank's main thread is in, outermost first."""

    def __init__(self, page: Page, ledger: Ledger, is_ours: Callable[[], bool]) -> None:
        self._page = page
        self._ledger = ledger
        self._is_ours = is_ours
        self.stack: list[tuple[bytes, int]] = []
        self._main = threading.main_thread().ident
        self._enter, self._leave = harmless(self._note_enter), harmless(self._note_leave)

    def wrap(self, owner: Any, name: str, phase: bytes) -> None:
        """Puts a function in the place of ``owner.name`` that notes the phase while the former one runs.

        Also where it was defined: pickle looks for it there.
        """
        original = getattr(owner, name)

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self._enter(phase)
            try:
                return original(*args, **kwargs)
            finally:
                self._leave(phase)

        home = sys.modules.get(original.__module__)
        if getattr(home, name, None) is original:
            setattr(home, name, wrapper)
        setattr(owner, name, wrapper)

    def wrap_start(self, owner: Any, name: str, phase: bytes) -> None:
        """The same for a function that only begins a phase, which ends with the next step."""
        from torch.compiler import is_compiling  # noqa: PLC0415 - imported by training already

        original = getattr(owner, name)

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not is_compiling():
                self._enter(phase)
            return original(*args, **kwargs)

        setattr(owner, name, wrapper)

    def listen_to_compiler(self, handler: Any) -> None:
        """Hears from torch's compiler when it begins and ends."""
        handler.register_start_callback(lambda *_: self._enter(COMPILE))
        handler.register_end_callback(lambda *_: self._leave(COMPILE))

    def end_evaluation(self) -> None:
        """A step shows that training goes on."""
        if self.stack and self.stack[-1][0] == EVALUATION:
            self._leave(EVALUATION)

    def _note_enter(self, phase: bytes) -> None:
        began_ns = time.perf_counter_ns()
        if threading.get_ident() != self._main or not self._is_ours() or len(self.stack) > _MOST:
            return
        if phase == EVALUATION and self.stack:
            return
        self.stack.append((phase, time.time_ns()))
        if len(self.stack) <= _TOLD:
            self._write()
        self._ledger.charge(began_ns)

    def _note_leave(self, phase: bytes) -> None:
        began_ns = time.perf_counter_ns()
        if threading.get_ident() != self._main or not self._is_ours():
            return
        stack = self.stack
        if stack and stack[-1][0] == phase:
            stack.pop()
        if len(stack) < _TOLD:
            self._write()
        self._ledger.charge(began_ns)

    def _write(self) -> None:
        """The outermost phase is the one to name: a checkpoint saves many files. What an evaluation holds tells more."""
        stack = self.stack
        name, since_ns = stack[-1] if len(stack) == _TOLD and stack[0][0] == EVALUATION else stack[0] if stack else _NOTHING
        self._page.write(PhaseRecord, since_ns or time.time_ns(), len(stack), name)
