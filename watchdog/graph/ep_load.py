"""How many rows each rank of a group is sent when tokens go to experts: by the sizes in recorders alone, no probe needed.

An uneven ``all_to_all`` is recorded with each rank's own sizes. In the dispatch of tokens every rank gives as many rows as the
others (its tokens, k times each) and takes as many as its experts are chosen; the combine is the reverse and says the same
again. Which experts are chosen changes from one to the next: sizes that never change are a fixed split and no routing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pardbg.watchdog.graph.groups import Group
from pardbg.watchdog.graph.progress import Lane, Progress
from pardbg.watchdog.model.operations import ALL_TO_ALL_OPS
from pardbg.watchdog.model.recording import Operation, Signature

LEAST_DISPATCHES = 32
MOST_DISPATCHES = 2_000
MOST_OPERATIONS = 400_000
"""Of all ranks of a group together: a second."""
HOT_RATIO = 1.25
"""Rows over the mean of the ranks, in nearly every dispatch: what the best placement of uneven experts stays well below."""
HOT_TOTAL_RATIO = 1.3
MOST_TIMES = 0.8
"""In how many of the dispatches a rank must be hot: one that is hot in turn with others is none."""


@dataclass(frozen=True)
class EpLoad:
    """The dispatches of one group. ``ratios``: all rows that each rank took, over the mean; ``hot``: who takes more always."""

    group: Group
    first_seq: int
    last_seq: int
    dispatches: int
    ratios: Mapping[int, float]
    hot: tuple[int, ...]


def find_ep_loads(progress: Progress) -> tuple[EpLoad, ...]:
    """The groups that dispatch tokens, all of whose members were seen. The newest count."""
    return tuple(load for group in progress.groups.groups if (load := _load_of(progress, group)) is not None)


def _load_of(progress: Progress, group: Group) -> EpLoad | None:
    lanes = {rank: progress.lanes.get((rank, group.index)) for rank in group.ranks}
    seen = {rank: lane for rank, lane in lanes.items() if lane is not None}
    if len(seen) < 2 or len(seen) < len(lanes) or not progress.is_whole(group.index):
        return None
    dispatches = list(_dispatches(progress, seen))
    changing = any(rows != dispatches[0][1] for _, rows in dispatches)
    if len(dispatches) < LEAST_DISPATCHES or not changing:
        return None
    totals = {rank: sum(rows[rank] for _, rows in dispatches) for rank in seen}
    mean = sum(totals.values()) / len(totals)
    ratios = {rank: total / mean for rank, total in totals.items()}
    hot = [rank for rank in seen if ratios[rank] >= HOT_TOTAL_RATIO and _is_always_hot(rank, dispatches)]
    return EpLoad(
        group=group,
        first_seq=dispatches[0][0],
        last_seq=dispatches[-1][0],
        dispatches=len(dispatches),
        ratios=ratios,
        hot=tuple(sorted(hot, key=lambda rank: (-ratios[rank], rank))),
    )


def _is_always_hot(rank: int, dispatches: Sequence[tuple[int, Mapping[int, int]]]) -> bool:
    hot = sum(rows[rank] * len(rows) >= HOT_RATIO * sum(rows.values()) for _, rows in dispatches)
    return hot >= MOST_TIMES * len(dispatches)


def _dispatches(progress: Progress, lanes: Mapping[int, Lane]) -> Iterator[tuple[int, dict[int, int]]]:
    """The newest dispatches, oldest first: sequence number, and the rows that each rank takes."""
    rank, first = next(iter(lanes.items()))
    found = first.collectives.items()
    exchanges = sorted(seq for seq, operation in found if _is_of_rows(_signature(progress, rank, operation)))
    most = max(LEAST_DISPATCHES, min(MOST_DISPATCHES, MOST_OPERATIONS // len(lanes)))
    for seq in exchanges[-2 * most :]:  # combines are among them
        if not all(seq in lane.collectives for lane in lanes.values()):
            continue
        signatures = {rank: _signature(progress, rank, lane.collectives[seq]) for rank, lane in lanes.items()}
        rows = _rows_taken(signatures)
        if rows is not None:
            yield seq, rows


def _signature(progress: Progress, rank: int, operation: Operation) -> Signature:
    return progress.view.recordings[rank].signatures[operation.signature]


def _rows_taken(signatures: Mapping[int, Signature]) -> dict[int, int] | None:
    """The rows of each rank, if this is a dispatch."""
    if not all(_is_of_rows(signature) for signature in signatures.values()):
        return None
    given = {signature.input_sizes[0][0] for signature in signatures.values()}
    taken = {rank: signature.output_sizes[0][0] for rank, signature in signatures.items()}
    widths = {size[1] for signature in signatures.values() for size in (signature.input_sizes[0], signature.output_sizes[0])}
    is_dispatch = len(given) == 1 and len(widths) == 1 and len(set(taken.values())) > 1
    return taken if is_dispatch and sum(taken.values()) == len(taken) * given.pop() else None


def _is_of_rows(signature: Signature) -> bool:
    if signature.op not in ALL_TO_ALL_OPS:
        return False
    sizes = (*signature.input_sizes, *signature.output_sizes)
    return len(signature.input_sizes) == len(signature.output_sizes) == 1 and all(len(size) == 2 for size in sizes)
