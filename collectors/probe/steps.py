"""Counts optimizer steps by torch's own hook for all optimizers, and asks the allocator for its figures now and then.

Cost: about 5 us a step. The allocator keeps its figures on the host: asking for them does not wait for the device.
"""

import sys
import time
import weakref
from collections.abc import Callable
from typing import Any

from .harmless import harmless
from .page import Page
from .page_format import MemoryRecord, StepRecord

_BETWEEN_ASKING_NS = 10 * 10**9


class Ledger:
    """The probe's own time: what its hooks have taken so far."""

    def __init__(self) -> None:
        self.hook_count = 0
        self.own_ns = 0

    def charge(self, began_ns: int) -> None:
        """Adds a hook that began at this moment of ``time.perf_counter_ns``."""
        self.hook_count += 1
        self.own_ns += time.perf_counter_ns() - began_ns


class Steps:
    """The steps of one rank. Of several optimizers the first counts; another takes its place when it is gone."""

    def __init__(
        self, page: Page, ledger: Ledger, is_ours: Callable[[], bool], tell: Callable[[], None] = lambda: None
    ) -> None:
        """``tell`` is called at each step."""
        self._page = page
        self._tell = tell
        self._ledger = ledger
        self._is_ours = is_ours
        self._optimizer: weakref.ref[Any] | None = None
        self._step = 0
        self._ended_ns = 0
        self._longest_ns = 0
        self._asked_ns = 0

    def listen(self) -> None:
        """Hears of every step of every optimizer from now on."""
        from torch.compiler import is_compiling  # noqa: PLC0415 - imported by training already
        from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: PLC0415

        note_step = harmless(self._note_step)

        def after_step(optimizer: Any, _args: Any, _kwargs: Any) -> None:
            if not is_compiling():  # a compiled step must not hold our hook, which no compiler understands
                note_step(optimizer)

        register_optimizer_step_post_hook(after_step)

    def _note_step(self, optimizer: Any) -> None:
        began_ns = time.perf_counter_ns()
        if not self._counts(optimizer) or not self._is_ours():
            return
        now_ns = time.time_ns()
        last_ns = max(0, now_ns - self._ended_ns) if self._ended_ns else 0
        self._step += 1
        self._ended_ns = now_ns
        self._longest_ns = max(self._longest_ns, last_ns)
        self._tell()
        ledger = self._ledger
        self._page.write(StepRecord, self._step, now_ns, last_ns, self._longest_ns, ledger.hook_count, ledger.own_ns)
        if now_ns - self._asked_ns > _BETWEEN_ASKING_NS:
            self._asked_ns = now_ns
            self._note_memory(now_ns)
        ledger.charge(began_ns)

    def _counts(self, optimizer: Any) -> bool:
        known = self._optimizer() if self._optimizer is not None else None
        if known is None:
            self._optimizer = weakref.ref(optimizer)
        return known is None or known is optimizer

    def _note_memory(self, now_ns: int) -> None:
        cuda: Any = sys.modules.get("torch.cuda")
        if cuda is None or not cuda.is_initialized():
            return
        figures: dict[str, Any] = cuda.memory_stats()
        names = ("allocated_bytes.all.current", "reserved_bytes.all.current", "num_alloc_retries")
        self._page.write(MemoryRecord, now_ns, *(max(0, int(figures.get(name, 0))) for name in names))
