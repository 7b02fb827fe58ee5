"""A rank with its root held open, if it lives in another mount namespace: its files are then read through that."""

import contextlib
from collections.abc import Iterator

from msgspec.structs import replace

from pardbg.collectors.live.recorders.rank_root import opened_root
from pardbg.collectors.live.recorders.request import Target
from pardbg.collectors.live.recorders.trusted_file import RefusedError


@contextlib.contextmanager
def entered(target: Target) -> Iterator[Target]:
    """The rank, with its ``root`` for as long as the block runs, or with the reason why it has none as ``closed``."""
    with contextlib.ExitStack() as stack:
        try:
            root = stack.enter_context(opened_root(target.foreign_root))
        except RefusedError as error:
            target = replace(target, closed=error.refusal)
        else:
            target = replace(target, root=root)
        yield target
