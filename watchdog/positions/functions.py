"""Functions of the training code that communicate.

``work.wait()`` is native code: a rank that waits there shows nothing but a line of the training code, like a rank that
computes. What tells them apart is whether that function communicates in this job: whether any recorder has seen it issue an
operation, or any rank that is known to wait stands in it.
"""

from collections.abc import Iterable

from pardbg.watchdog.model.issuing import issuing_functions
from pardbg.watchdog.model.summary import Function
from pardbg.watchdog.positions.position import Position
from pardbg.watchdog.store.view import EvidenceView


def communicating_functions(view: EvidenceView, waiting: Iterable[Position]) -> frozenset[Function]:
    """All functions known to communicate; empty if nothing is known of any.

    Args:
        view: the evidence; the frames of every recorded operation count.
        waiting: the positions of ranks that have an operation outstanding.
    """
    known: dict[int, frozenset[Function]] = {}  # most recordings share their tables
    for recording in view.recordings.values():
        table = recording.sites if recording.summary is None else recording.summary.functions
        if id(table) not in known:
            known[id(table)] = issuing_functions(recording)
    standing = {position.frame.function for position in waiting if position.frame is not None}
    return frozenset(standing.union(*known.values()))
