"""The moments of one replica, as they are kept on the page."""

from collections import deque
from collections.abc import Callable, Sequence
from zlib import crc32

from .. import replica_format as form


class Keeper:
    """What is known of the replica that is looked at. ``write`` puts a record on the page."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._head = form.NOTHING
        self._moments: dict[int, form.Moment] = {}
        self._newest: deque[form.Parts] = deque(maxlen=form.NEWEST)

    def begin(self, head: form.Head) -> None:
        """Another replica, or none: what was kept is of no use."""
        self._head = head
        self._moments.clear()
        self._newest.clear()
        self._write(form.encode(head, {}, ()))

    def keep(self, step: int, forward: int, sums: Sequence[int], data: int) -> None:
        """Adds a moment."""
        parts = [crc32((part % 2**64).to_bytes(8, "little")) for part in sums]
        weights = crc32(b"".join(part.to_bytes(4, "little") for part in parts))
        self._moments[form.slot_of(step)] = form.Moment(step % 2**32, forward % 2**32 or 1, weights, data)
        self._newest.append(form.Parts(step % 2**32, tuple(parts)))
        self._write(form.encode(self._head, self._moments, tuple(self._newest)))
