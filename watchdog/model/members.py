"""Members of a group in small: a parallel layout is made of arithmetic progressions.

In a job of N ranks every dump lists all N members of the world. Kept as lists that is N x N numbers; as runs it is N.
"""

from collections.abc import Sequence
from functools import lru_cache

MAX_WORLD_SIZE = 200_000  # larger than any cluster; what claims more is damage or a trap

Run = tuple[int, int, int]
"""First member, step, count."""


def fold_members(ranks: Sequence[int]) -> tuple[Run, ...]:
    """Writes members as runs. The order is kept: a member's place is its group rank."""
    runs: list[Run] = []
    start = 0
    while start < len(ranks):
        step = ranks[start + 1] - ranks[start] if start + 1 < len(ranks) else 1
        count = 1
        while start + count < len(ranks) and ranks[start + count] - ranks[start + count - 1] == step:
            count += 1
        runs.append((ranks[start], step, count))
        start += count
    return tuple(runs)


def is_member(rank: int, runs: tuple[Run, ...]) -> bool:
    """Whether a rank is among the members."""
    if len(runs) == 1:  # nearly always, and asked for every rank and group of a job
        first, step, count = runs[0]
        return rank == first or (step != 0 and rank in range(first, first + step * count, step))
    return any(is_member(rank, (run,)) for run in runs)


def count_members(runs: tuple[Run, ...]) -> int:
    """How many they are."""
    return sum(count for _, _, count in runs)


@lru_cache(maxsize=4096)
def unfold_members(runs: tuple[Run, ...]) -> tuple[int, ...]:
    """The members again; equal runs share one tuple."""
    return tuple(first + step * index for first, step, count in runs for index in range(count))
