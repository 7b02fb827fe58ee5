"""What a digest says of the operations it leaves out, so that ranks can be compared without shipping their rings.

The members of a group must agree on what they issue. So each writes a chain of hashes over it, in aligned blocks of sequence
numbers: ranks whose windows lie apart still have whole blocks in common, and a chain that is shorter by the operations that are
kept in the other rank's digest can be continued with these.
"""

from msgspec import Struct

from pardbg.watchdog.model.base import Noun

BLOCK_SIZE = 64
KEPT_OPEN = 16
"""Unfinished operations of a group that are kept, the oldest; and the newest one."""
KEPT_P2P = 32
"""Transfers of a group that are kept, the newest."""


Function = tuple[str, str]
"""File and bare name."""


class Block(Struct, frozen=True, array_like=True, gc=False):
    """``count`` collectives of one group without a gap, from ``first_seq`` on.

    ``group`` is an index into the recording's table; ``hard`` and ``full`` are their hashes without and with call sites.
    """

    group: int
    first_seq: int
    count: int
    hard: int
    full: int

    @property
    def number(self) -> int:
        """Which of the aligned blocks it is, or is a part of."""
        return self.first_seq // BLOCK_SIZE

    @property
    def end_seq(self) -> int:
        """The sequence number after its last one."""
        return self.first_seq + self.count


class Summary(Noun, frozen=True, kw_only=True, omit_defaults=True):
    """Of one rank's whole ring.

    Attributes:
        first_record_id: of the oldest operation in the ring; 0: nothing has been overwritten yet.
        longest_gap_ns: the longest time between two operations, ns.
        usual_gap_ns: the median time between two collectives, ns.
        functions: of the training code, that issue operations: by file their bare names.
        loop_function: the innermost one that has issued all of the last collectives.
        blocks: what the newest collectives of each group were, in hashes.
        calls: the newest finished operations with their times, packed (`watchdog/model/calls.py`).
        cut: what had to be left out for the digest to be small enough, in words; else empty.
    """

    first_record_id: int = 0
    longest_gap_ns: int | None = None
    usual_gap_ns: int | None = None
    functions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    loop_function: Function | None = None
    blocks: tuple[Block, ...] = ()
    calls: bytes = b""
    cut: str = ""
