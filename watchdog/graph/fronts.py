"""Fronts: the operation each rank stands at.

Per rank the oldest unfinished operation, in the order of its recorder; what is queued behind it is a consequence. Groups run on
streams of their own, so the oldest unfinished operation of every other group is kept as an alternate.
"""

from dataclasses import dataclass

from pardbg.watchdog.graph.progress import Progress
from pardbg.watchdog.model.recording import NO_SITE, Operation

LOST = -1  # record id and signature of an operation that was overwritten


@dataclass(frozen=True)
class Front:
    """Where a rank stands in one group. Several operations only if they were launched together (batched P2P)."""

    rank: int
    group: int
    operations: tuple[Operation, ...]

    @property
    def operation(self) -> Operation:
        """The first of the operations."""
        return self.operations[0]


def find_fronts(progress: Progress) -> dict[int, tuple[Front, ...]]:
    """The fronts of every rank that was seen, oldest first; none if nothing is outstanding, or the dump is an old picture."""
    lost = _find_lost(progress)
    return {
        rank: () if rank in progress.behind else _fronts_of(rank, progress, lost.get(rank, {}))
        for rank in progress.view.recordings
    }


def _fronts_of(rank: int, progress: Progress, lost: dict[int, Operation]) -> tuple[Front, ...]:
    fronts: dict[int, list[Operation]] = {group: [operation] for group, operation in lost.items()}
    has_limits = bool(progress.limits)  # else what is done is finished
    for group, operation in progress.operations(rank):
        if operation.is_done and not (has_limits and not progress.is_finished(rank, group, operation)):
            continue
        standing = fronts.setdefault(group, [])
        if not standing or (operation.batch and operation.batch == standing[0].batch):
            standing.append(operation)
    return tuple(Front(rank, group, tuple(operations)) for group, operations in fronts.items())


def _find_lost(progress: Progress) -> dict[int, dict[int, Operation]]:
    """Stands in for operations the ring lost while they were unfinished, by rank and group; the counters tell of them."""
    lost: dict[int, dict[int, Operation]] = {}
    for (rank, group), lane in progress.lanes.items():
        if lane.first_lost is not None:
            lost.setdefault(rank, {})[group] = Operation(
                LOST, group, lane.first_lost, 0, LOST, NO_SITE, 0, is_done=False, is_p2p=False
            )
    return lost
