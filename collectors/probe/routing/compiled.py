"""The one operation that stands for a router's hook in a compiled graph. It decides what to do when it is run, not when traced.

It says that it changes the row, so that no compiler leaves it out or runs it twice for its result.
"""

from collections.abc import Callable, Sequence

import torch

Counter = Callable[[torch.Tensor, Sequence[torch.Tensor], int, int], None]


def define_operation(count: Counter) -> torch.library.Library:
    """Makes ``torch.ops.pardbg.count_routing(row, tensors, key, capacity)``. It is there as long as what is returned.

    Raises:
        RuntimeError: if there is one already.
    """
    library = torch.library.Library("pardbg", "FRAGMENT")  # type: ignore[no-untyped-call]
    library.define("count_routing(Tensor(a!) row, Tensor[] said, SymInt key, SymInt capacity) -> ()")  # type: ignore[no-untyped-call]
    library.impl("count_routing", count, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
    torch.library.register_fake("pardbg::count_routing", _do_nothing, lib=library)
    return library


def _do_nothing(_row: torch.Tensor, _said: Sequence[torch.Tensor], _key: int, _capacity: int) -> None:
    """While it is traced nothing is counted."""
