"""Counts optimizer steps by torch's own hook for all optimizers, and asks the allocator for its figures now and then.

Cost: about 3 us a step where its code is in the processor's cache, 18 us where it is not. The allocator keeps its
figures on the host: asking for them does not wait for the device.
"""

import sys
import time
import weakref
from collections.abc import Callable, Sequence
from struct import error as struct_error
from time import time_ns as wall_ns
from typing import Any
from zlib import crc32

from .harmless import harmless
from .page import Page
from .page_format import MOST_VERSIONS, MemoryRecord, StepRecord, seal

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

    def __init__(self, page: Page, ledger: Ledger, here: Sequence[int], phases: Sequence[Any] = ()) -> None:
        """``here`` is empty in a forked child.

        ``phases`` are those that the rank is in: a step ends an evaluation, for which ``end_evaluation`` is called. Where there
        are ``routers``, set before `make_hook`, ``end_routing`` is told each step's number and end (epoch ns), and ``see_step``
        the optimizer of each, counted or not.
        """
        self._page = page
        self._ledger = ledger
        self._here = here
        self._phases = phases
        self.end_evaluation: Callable[[], None] = _nothing
        self.routers: Sequence[Any] = ()
        self.end_routing: Callable[[int, int], None] = _nothing_of_step
        self.see_step: Callable[[Any], None] = _nothing_of_optimizer

    def listen(self) -> None:
        """Hears of every step of every optimizer from now on."""
        from torch.compiler import is_compiling  # noqa: PLC0415 - imported by training already
        from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: PLC0415

        register_optimizer_step_post_hook(self.make_hook(is_compiling))

    def make_hook(self, is_compiling: Callable[[], bool]) -> Callable[[Any, Any, Any], None]:  # noqa: C901 - in one piece
        """The function that torch calls after each step.

        Everything it needs is at hand and in one piece: training has emptied the caches, and each function that is called
        has to be fetched again, which takes longer than running it (measured: 28 us in five functions).
        """
        (mapped, start, end, pack), ledger, here, phases = self._page.slot(StepRecord), self._ledger, self._here, self._phases
        known: Callable[[], Any] = _nothing
        version = step = ended_ns = longest_ns = asked_ns = 0
        tell_memory, end_evaluation = harmless(self._note_memory), harmless(self._tell)
        routers, end_routing, see_step = self.routers, harmless(self.end_routing), harmless(self.see_step)

        def after_step(optimizer: Any, _args: Any, _kwargs: Any) -> None:
            nonlocal known, version, step, ended_ns, longest_ns, asked_ns
            if is_compiling():  # a compiled step must not hold our hook, which no compiler understands
                return
            try:
                now_ns = wall_ns()
                if routers:
                    see_step(optimizer)
                if known() is not optimizer:
                    if known() is not None:
                        return
                    known = weakref.ref(optimizer)
                if not here:
                    return
                last_ns = now_ns - ended_ns if 0 < ended_ns < now_ns else 0
                longest_ns = max(longest_ns, last_ns)
                step += 1
                ended_ns = now_ns
                body = pack(step, now_ns, last_ns, longest_ns, ledger.hook_count, ledger.own_ns)
                version = version % MOST_VERSIONS + 1
                mapped[start:end] = seal(version, crc32(body, version)) + body
                if phases:
                    end_evaluation()
                if routers:
                    end_routing(step, now_ns)
                if now_ns - asked_ns > _BETWEEN_ASKING_NS:
                    asked_ns = now_ns
                    tell_memory(now_ns)
                ledger.hook_count += 1
                ledger.own_ns += max(0, wall_ns() - now_ns)
            except (ValueError, TypeError, OverflowError, struct_error):  # nothing else can come of these lines
                return

        return after_step

    def _tell(self) -> None:
        self.end_evaluation()

    def _note_memory(self, now_ns: int) -> None:
        cuda: Any = sys.modules.get("torch.cuda")
        if cuda is None or not cuda.is_initialized():
            return
        figures: dict[str, Any] = cuda.memory_stats()
        names = ("allocated_bytes.all.current", "reserved_bytes.all.current", "num_alloc_retries")
        self._page.write(MemoryRecord, now_ns, *(max(0, int(figures.get(name, 0))) for name in names))


def _nothing() -> None:
    """For what is not there yet."""


def _nothing_of_step(_step: int, _ended_ns: int) -> None:
    """The same for what is told of a step."""


def _nothing_of_optimizer(_optimizer: Any) -> None:
    """The same for what is told of an optimizer."""
