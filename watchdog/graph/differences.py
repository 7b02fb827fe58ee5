"""Where digests show that the members of a group did not issue the same, and whose entries would tell what they issued. Pure.

Ranks with equal hashes have issued the same, so one of them speaks for all, in whichever group: a job has few kinds of ranks.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from pardbg.watchdog.graph.groups import Group
from pardbg.watchdog.graph.progress import Progress
from pardbg.watchdog.model.evidence import SharedEntries
from pardbg.watchdog.model.matching import chain
from pardbg.watchdog.model.members import fold_members
from pardbg.watchdog.model.summary import BLOCK_SIZE, Block
from pardbg.watchdog.model.wanted import Cut, Wanted

MOST_KINDS = 16
"""Ranks of one group that are asked: where more have gone ways of their own, the largest parts of the group will do."""
MOST_WANTED = 256
_BLOCKS_BEFORE = 2
"""What was usual before a difference says which edit explains it (`alignment.py`)."""

Row = tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True)
class Difference:
    """Whom to ask for what, and who has recorded the same, by the name of the group."""

    wanted: Wanted
    alike: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Differences:
    """All that would tell more, as far as it is asked for.

    ``unasked``: parts of rings beyond `MOST_WANTED`; ``unlike``: ranks of kinds beyond the `MOST_KINDS` of their group.
    """

    found: tuple[Difference, ...] = ()
    unasked: int = 0
    unlike: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Kind:
    """Members of a group with equal hashes."""

    row: Row
    ranks: tuple[int, ...]


def find_differences(progress: Progress, groups: Iterable[Group]) -> Differences:
    """What to ask, so that the first divergence of these groups can be found as if all rings were here."""
    differing: list[tuple[bool, int, int, Group, list[_Kind]]] = []
    unlike: set[int] = set()
    for group in groups:
        all_kinds = _kinds(progress, group)
        kinds = all_kinds[:MOST_KINDS]
        unlike.update(rank for kind in all_kinds[MOST_KINDS:] for rank in kind.ranks)
        found = [place for pair in combinations(kinds, 2) if (place := _first_difference(progress, group, *pair)) is not None]
        if found:
            is_soft = all(is_soft for _, is_soft in found)
            differing.append((is_soft, group.index, min(number for number, _ in found), group, kinds))
    wanted: dict[Row, Difference] = {}
    unasked: set[Row] = set()
    for _, _, number, group, kinds in sorted(differing, key=lambda item: item[:2]):
        for kind in kinds:
            row = _part(kind.row, (number - _BLOCKS_BEFORE) * BLOCK_SIZE)
            if row in wanted or len(wanted) < MOST_WANTED:
                _want(wanted, group, kind, row)
            elif row:
                unasked.add(row)
    return Differences(tuple(wanted.values()), len(unasked), tuple(sorted(unlike)))


def share(differences: Iterable[Difference], cuts: Iterable[Cut]) -> Iterator[tuple[int, SharedEntries]]:
    """What was answered, as evidence of all the ranks that it speaks for; with the rank that was asked."""
    answered = {cut.wanted: cut.recording for cut in cuts}
    for difference in differences:
        recording = answered.get(difference.wanted)
        if recording is None:
            continue
        for name, parts in difference.alike.items():
            runs = fold_members(sorted({rank for ranks in parts for rank in ranks}))
            yield difference.wanted.rank, SharedEntries(group=name, runs=runs, recording=recording)


def _kinds(progress: Progress, group: Group) -> list[_Kind]:
    """The kinds of members, the largest first."""
    rows: dict[Row, list[int]] = {}
    for rank in group.ranks:
        lane = progress.lanes.get((rank, group.index))
        if lane is not None and lane.left_out:
            rows.setdefault(_row(lane.left_out), []).append(rank)
    return sorted((_Kind(row, tuple(ranks)) for row, ranks in rows.items()), key=lambda kind: (-len(kind.ranks), kind.ranks))


def _row(blocks: Sequence[Block]) -> Row:
    return tuple((block.first_seq, block.count, block.hard, block.full) for block in blocks)


def _first_difference(progress: Progress, group: Group, one: _Kind, other: _Kind) -> tuple[int, bool] | None:
    """The number of the first block in which two kinds differ, or may, and whether in call sites only."""
    starts = {first_seq: (count, hard, full) for first_seq, count, hard, full in other.row}
    for first_seq, *mine in one.row:
        theirs = starts.get(first_seq)
        if theirs is None or tuple(mine) == theirs:
            continue  # windows that begin elsewhere cannot be compared
        short, long, rank = (mine, theirs, other.ranks[0]) if mine[0] < theirs[0] else (theirs, mine, one.ranks[0])
        hard, full = _continue(progress, group, rank, (first_seq, *short), long[0])
        if (hard, full) != tuple(long[1:]):
            return first_seq // BLOCK_SIZE, hard == long[1]
    return None


def _continue(progress: Progress, group: Group, rank: int, block: tuple[int, ...], count: int) -> tuple[int | None, int | None]:
    """The hashes of a shorter block with what a rank that is ahead has issued after it; None if that is not in its digest."""
    first_seq, own_count, hard, full = block
    lane = progress.lanes[rank, group.index]
    seqs = range(first_seq + own_count, first_seq + count)
    if any(seq not in lane.collectives for seq in seqs):
        return None, None
    tokens = progress.tokens.of(progress.view.recordings[rank], {seq: lane.collectives[seq] for seq in seqs})
    for seq in seqs:
        hard, full = chain(hard, tokens[seq].hard), chain(full, tokens[seq])
    return hard, full


def _part(row: Row, first_seq: int) -> Row:
    return tuple(block for block in row if block[0] + block[1] > first_seq)


def _want(wanted: dict[Row, Difference], group: Group, kind: _Kind, row: Row) -> None:
    if not row:
        return
    if row not in wanted:
        last_seq = row[-1][0] + row[-1][1] - 1
        asked = Wanted(rank=kind.ranks[0], group=group.name, first_seq=max(row[0][0], 0), last_seq=last_seq)
        wanted[row] = Difference(asked)
    wanted[row].alike.setdefault(group.name, []).append(kind.ranks)
