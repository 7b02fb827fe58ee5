"""The times between a rank's operations: how long it has paused, and what is usual."""

from itertools import pairwise
from statistics import median

from pardbg.watchdog.model.recording import Recording


def longest_gap_ns(recording: Recording) -> int | None:
    """The longest time between two operations, ns; None if there are no two."""
    if recording.summary is not None:
        return recording.summary.longest_gap_ns
    times = [operation.created_ns for operation in recording.operations if operation.created_ns]
    return max((after - before for before, after in pairwise(times)), default=None)


def usual_gap_ns(recording: Recording) -> int | None:
    """The median time between two collectives, ns; None if there are no two."""
    if recording.summary is not None:
        return recording.summary.usual_gap_ns
    times = [operation.created_ns for operation in recording.operations if operation.created_ns and not operation.is_p2p]
    gaps = [after - before for before, after in pairwise(times)]
    return int(median(gaps)) if gaps else None
