"""Functions of the training code that communicate.

``work.wait()`` is native code: a rank that waits there shows nothing but a line of the training code, like a rank that
computes. What tells them apart is whether that function communicates in this job: whether any recorder has seen it issue an
operation, or any rank that is known to wait stands in it.
"""

from collections.abc import Iterable

from pardbg.watchdog.model.recording import Frame
from pardbg.watchdog.positions.position import Position
from pardbg.watchdog.store.view import EvidenceView

Function = tuple[str, str]


def identify(frame: Frame) -> Function:
    """A function by file and bare name: recorders write ``step``, py-spy ``Trainer.step``."""
    return frame.filename, frame.bare_name


def communicating_functions(view: EvidenceView, waiting: Iterable[Position]) -> frozenset[Function]:
    """All functions known to communicate; empty if nothing is known of any.

    Args:
        view: the evidence; the frames of every recorded operation count.
        waiting: the positions of ranks that have an operation outstanding.
    """
    recorded = {identify(frame) for recording in view.recordings.values() for site in recording.sites for frame in site}
    return frozenset(recorded | {identify(position.frame) for position in waiting if position.frame is not None})
