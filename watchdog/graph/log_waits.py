"""Who waited in what, as watchdogs say when they give up. Pure.

A line tells one operation of one rank, so that ranks can be compared only where they stand at the same number of the same
group, and a rank that is one ahead in a broadcast is no divergence: its root may have finished alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pardbg.watchdog.graph.divergence import CLEAR_RATIO, MIN_MAJORITY
from pardbg.watchdog.graph.log_facts import LogFacts
from pardbg.watchdog.model.log_event import CollectiveTimeout, GroupName, GroupStatus
from pardbg.watchdog.model.names import Mismatch

_PAIRWISE = frozenset({"send", "recv", "coalesced", "sendrecv"})  # their numbers are those of pairs, or of nothing
_ALIKE = frozenset({"all_reduce", "broadcast", "_all_gather_base", "_reduce_scatter_base", "reduce"})  # one size on all members
_NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class LogSide:
    """The ranks that wait in one and the same thing; ``seq`` is its number where sides differ in that."""

    ranks: tuple[int, ...]
    op: str
    numel: int | None
    seq: int | None = None


@dataclass(frozen=True)
class LogSplit:
    """Members of a group that wait in different things under one number; the largest side first."""

    group: GroupName
    seq: int
    sides: tuple[LogSide, ...]
    mismatch: Mismatch | None
    elsewhere: tuple[int, ...]
    is_numbered_as_world: bool = False

    def minority(self, world_size: int | None) -> tuple[int, ...]:
        """The ranks that a clear majority stands against; only of a world of known size are all members known."""
        if world_size is None:
            return ()
        largest = len(self.sides[0].ranks)
        against = world_size - largest  # whoever said nothing may stand on any side
        is_clear = largest >= MIN_MAJORITY and largest >= CLEAR_RATIO * against
        return tuple(rank for side in self.sides[1:] for rank in side.ranks) if is_clear and self._is_of_all(world_size) else ()

    def _is_of_all(self, world_size: int) -> bool:
        """Whether the group is the world: by its name, or since all ranks have spoken, each under its own number."""
        heard = sum(len(side.ranks) for side in self.sides) + len(self.elsewhere)
        return self.group.is_world or (self.is_numbered_as_world and heard == world_size)


def waits_of(logs: LogFacts) -> dict[GroupName, dict[int, CollectiveTimeout]]:
    """The first wait that each rank gave up, by group; groups in which labels clash are left out."""
    found: dict[GroupName, dict[int, CollectiveTimeout]] = {}
    for fact, event in logs.of_type(CollectiveTimeout):
        if fact.rank is not None and event.seq is not None and event.op not in _PAIRWISE:
            found.setdefault(event.group, {}).setdefault(fact.rank, event)
    return {group: waits for group, waits in found.items() if _is_one_group(group, waits)}


def find_split(group: GroupName, waits: dict[int, CollectiveTimeout]) -> LogSplit | None:
    """The earliest number at which members of a group wait in different things."""
    by_seq: dict[int, dict[int, CollectiveTimeout]] = {}
    for rank, wait in sorted(waits.items()):
        by_seq.setdefault(wait.number, {})[rank] = wait
    for seq, there in sorted(by_seq.items()):
        is_split_by_op = len({wait.op for wait in there.values()}) > 1
        sides = _sides(there, by_size=not is_split_by_op)
        if len(sides) > 1:
            elsewhere = tuple(rank for rank in sorted(waits) if rank not in there)
            mismatch = Mismatch.OP if is_split_by_op else Mismatch.SIZE
            is_numbered = all(wait.group_rank == rank for rank, wait in waits.items())
            return LogSplit(group, seq, sides, mismatch, elsewhere, is_numbered)
    return None


def find_behind(logs: LogFacts, group: GroupName, waits: dict[int, CollectiveTimeout]) -> tuple[int, ...]:
    """The ranks that had not issued what the others of a group wait in, by their own status lines.

    Only those whose line was written while the others waited, that had finished all they issued, and that waited nowhere.
    """
    starts = [wait.at_ns - (wait.ran_ms or 0) * _NS_PER_MS for wait in waits.values() if wait.at_ns is not None]
    if not starts or len(starts) < len(waits):
        return ()
    first_seq, all_wait_ns = min(wait.number for wait in waits.values()), max(starts)
    busy = {fact.rank for fact, _ in logs.of_type(CollectiveTimeout)}
    return tuple(
        sorted(
            {
                fact.rank
                for fact, status in logs.of_type(GroupStatus)
                if status.group == group
                and fact.rank is not None
                and fact.rank not in busy
                and status.at_ns is not None
                and status.at_ns >= all_wait_ns
                and status.enqueued == status.completed < first_seq
            }
        )
    )


def _is_one_group(group: GroupName, waits: dict[int, CollectiveTimeout]) -> bool:
    """Whether all who name a group mean the same one: siblings may share a name, and old watchdogs give none."""
    numbers = [wait.group_rank for wait in waits.values() if wait.group_rank is not None]
    if len(set(numbers)) < len(numbers):
        return False
    is_global = all(wait.group_rank in {None, rank} for rank, wait in waits.items())
    return is_global if group.is_world or not group.name else True


def _sides(there: dict[int, CollectiveTimeout], *, by_size: bool) -> tuple[LogSide, ...]:
    found: dict[tuple[str, int | None], list[int]] = {}
    for rank, wait in there.items():
        size = wait.numel_in if by_size and wait.op in _ALIKE else None
        found.setdefault((wait.op, size), []).append(rank)
    if by_size and any(size is None for _, size in found):
        return ()  # what is not told is no difference
    sides: Iterable[LogSide] = (
        LogSide(tuple(ranks), op, size if by_size else there[ranks[0]].numel_in) for (op, size), ranks in found.items()
    )
    return tuple(sorted(sides, key=lambda side: (-len(side.ranks), side.ranks)))
