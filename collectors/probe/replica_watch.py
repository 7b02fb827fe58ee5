"""The way in for `replicas/`, which needs all of torch: it begins with the first group, before which no replica is made.

It puts a method of its own in the place of one that DistributedDataParallel calls at the begin of each pass, and hands
everything through: one frame more in the stack while DDP makes ready, and where DDP itself is compiled one break more in a
graph that it breaks there anyway. ``PARDBG_REPLICAS=0`` switches it off.
"""

import functools
import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any

from .harmless import harmless, note
from .page import Page
from .steps import Ledger

SWITCH = "PARDBG_REPLICAS"
_NAME = "_pre_forward"

See = Callable[[Any, tuple[Any, ...], dict[str, Any]], None]


class ReplicaWatch:
    """What one process does to hear of the passes of its replicas."""

    def __init__(self) -> None:
        self._replicas: Any = None

    def start(self, page: Page, ledger: Ledger, here: Sequence[int]) -> None:
        """Looks at replicas from now on. ``here`` is empty in a forked child, which may start anew."""
        if os.environ.get(SWITCH) == "0":
            note(f"{SWITCH}=0: replicas are not looked at")
            return
        from torch.nn.parallel import DistributedDataParallel  # noqa: PLC0415 - imported by training already

        from .replicas.watching import Replicas  # noqa: PLC0415 - as above

        if self._replicas is None:
            self._replicas = Replicas()
            listen(DistributedDataParallel, self._replicas.see_pass)
        self._replicas.start(page, ledger, here)


def listen(owner: Any, see: See) -> None:
    """Calls ``see`` with module and arguments at the begin of each pass, but those of a graph that DDP leaves whole."""
    torch: Any = importlib.import_module("torch")  # imported by training already
    is_compiling, has_gradients = torch.compiler.is_compiling, torch.is_grad_enabled
    original, seen = getattr(owner, _NAME), harmless(see)
    seen_beside = torch._disable_dynamo(seen)  # noqa: SLF001 - as DDP does with what it calls next

    @functools.wraps(original)
    def begin_pass(self: Any, *inputs: Any, **named: Any) -> Any:
        if not is_compiling():
            seen(self, inputs, named)
        elif has_gradients() and not getattr(self, "_use_python_reducer", True):  # else DDP ends the graph anyway
            seen_beside(self, inputs, named)
        return original(self, *inputs, **named)

    setattr(owner, _NAME, begin_pass)
