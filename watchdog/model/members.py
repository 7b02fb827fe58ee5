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
        if step:
            whole = range(ranks[start], ranks[start] + step * (len(ranks) - start), step)
            if tuple(whole) == tuple(ranks[start:]):
                return (*runs, (whole[0], step, len(whole)))
        count = 1
        while start + count < len(ranks) and ranks[start + count] - ranks[start + count - 1] == step:
            count += 1
        runs.append((ranks[start], step, count))
        start += count
    return tuple(runs)


@lru_cache(maxsize=4096)
def unfold_members(runs: tuple[Run, ...]) -> tuple[int, ...]:
    """The members again; equal runs share one tuple."""
    return tuple(first + step * index for first, step, count in runs for index in range(count))
