"""What names a meeting: one operation of one group, or one transfer between two ranks."""

from typing import NamedTuple

FROM_STACKS = -1
UNKNOWN_PEER = -1


class MeetingKey(NamedTuple):
    """Names a meeting.

    ``seq`` is None for P2P, then ``src`` and ``dst`` are global ranks and ``group`` may be `FROM_STACKS`; it is negative for a
    collective that only stacks show: those have no sequence number, it merely tells apart the operations of one group.
    """

    group: int
    seq: int | None
    src: int = UNKNOWN_PEER
    dst: int = UNKNOWN_PEER

    @property
    def is_p2p(self) -> bool:
        """Whether two ranks meet, instead of a group."""
        return self.seq is None

    @property
    def is_gathering(self) -> bool:
        """Whether only stacks show it."""
        return self.seq is not None and self.seq < 0
