"""The replica record of a rank's page (`collectors/probe/replica_format.py`) -> a `ReplicaSeen`.

Whatever the bytes are, what comes of them is of bounded size, and makes sense by itself: a page may be anybody's.
"""

from pardbg.collectors.probe.replica_format import MOST_PARTS, Head, decode, is_due
from pardbg.watchdog.model.replica import ReplicaMoment, ReplicaParts, ReplicaSeen

MOST_RANKS = 2**20


def read_replica(body: bytes) -> ReplicaSeen | None:
    """What a record says; None if it says nothing, or makes no sense."""
    found = decode(body)
    if found is None or not _is_sane(found[0]):
        return None
    head, moments, newest = found
    by_step = {moment.step: ReplicaMoment(*moment) for moment in moments if moment.forward and is_due(moment.step)}
    return ReplicaSeen(
        ordinal=head.ordinal,
        group=head.group,
        size=head.size,
        tensors=head.tensors,
        parts=head.parts,
        seen=head.seen,
        whole=head.whole,
        moments=tuple(by_step[step] for step in sorted(by_step)),
        newest=tuple(sorted((ReplicaParts(*parts) for parts in newest if parts.step in by_step), key=lambda parts: parts.step)),
    )


def _is_sane(head: Head) -> bool:
    return (
        head.group > 0
        and 1 < head.size <= MOST_RANKS
        and 0 < head.parts <= min(MOST_PARTS, head.tensors)
        and 0 < head.seen <= head.whole < 2**63
    )
