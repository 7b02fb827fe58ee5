"""Aligning two sequences of operations: which edit makes the one match the other from a place on?

A call site that differs proves little: ``if rank == 0: broadcast(...) else: broadcast(...)`` is legal. What proves it is that
the operations *after* that place match when shifted by one, and do not match unshifted.
"""

from collections.abc import Sequence

from pardbg.watchdog.model.matching import Token
from pardbg.watchdog.model.names import Edit

MIN_SHIFTED_SHARE = 0.75  # of the compared operations must match after the edit; legal call-site differences take the rest
MIN_GAIN = 0.25  # ... and that much more than match without it
COMPARED_OPERATIONS = 64  # enough to tell, and bounded for long rings


def find_edit(own: Sequence[Token], others: Sequence[Token], history: Sequence[Token] = ()) -> Edit | None:
    """Finds what was done to ``own``, both sequences starting at the divergence.

    Args:
        own: what the deviating rank issued from the divergence on.
        others: what the other side issued from there on.
        history: what the other side issued before, oldest first. Where it repeats itself, it tells what the other side would
            have issued next: ranks that block at the divergence itself have no later operations to compare.
    """
    if not own or not others:
        return None
    expected = [*others, *_continue(history, others)]
    shares = {
        Edit.SWAPPED: _share([own[1], own[0], *own[2:]], expected) if _is_swapped(own, others) else 0.0,
        Edit.SKIPPED: _share(own, expected[1:]),
        Edit.EXTRA: _share(own[1:], others),
    }
    best = max(shares, key=lambda edit: shares[edit])
    if best is Edit.SWAPPED:
        return best if shares[best] >= MIN_SHIFTED_SHARE else None
    unedited = max(_share(own, others), _share(own[1:], others[1:]))  # the second: one operation replaced by another
    return best if shares[best] >= MIN_SHIFTED_SHARE and shares[best] >= unedited + MIN_GAIN else None


def _is_swapped(own: Sequence[Token], others: Sequence[Token]) -> bool:
    """Whether the first two operations change places, which shifts nothing after them."""
    if min(len(own), len(others)) < 2 or own[0].differs(others[0]) is None:
        return False
    return own[0].differs(others[1]) is None and own[1].differs(others[0]) is None


def _share(left: Sequence[Token], right: Sequence[Token]) -> float:
    """The share of operations that match, pair by pair, as far as both go."""
    pairs = list(zip(left[:COMPARED_OPERATIONS], right[:COMPARED_OPERATIONS], strict=False))
    return sum(a.differs(b) is None for a, b in pairs) / len(pairs) if pairs else 0.0


def _continue(history: Sequence[Token], recent: Sequence[Token]) -> list[Token]:
    """What a repeating sequence would do next: its shortest period that held twice, continued for one period."""
    sequence = [*history, *recent]
    for period in range(1, len(sequence) // 2 + 1):
        if period > COMPARED_OPERATIONS:
            break
        tail, before = sequence[-period:], sequence[-2 * period : -period]
        if all(a.differs(b) is None for a, b in zip(tail, before, strict=True)) and len(set(tail)) > 1:
            return list(before)
    return []
