"""How a set of ranks is written: ``0-2,4-5``, and ``0-504:8`` for every eighth rank, as Slurm writes array steps."""

from collections.abc import Iterable, Iterator

SHORTEST_STRIDED_RUN = 5
"""Ranks a run needs before ``first-last:stride`` is easier to read than the ranks themselves."""
MOST_CHARACTERS = 80
"""Of ranks or hosts in a sentence: beyond it nobody reads them."""


def fold_ranks(ranks: Iterable[int]) -> str:
    """Write ranks in ascending order, neighbours joined: ``fold_ranks([0, 1, 2, 4, 5]) == "0-2,4-5"``.

    Groups of a parallel layout are strided, so five or more ranks at equal distance are joined too: ``0-504:8``.
    """
    return ",".join(_write_run(run) for run in _runs(sorted(set(ranks))))


def fold_briefly(ranks: Iterable[int], most: int = MOST_CHARACTERS) -> str:
    """The same in about ``most`` characters: ``0-7,152-159 and 1622 more``. The JSON of a report has all of them."""
    runs = list(_runs(sorted(set(ranks))))
    shown, used = 0, 0
    while shown < len(runs) and (used <= most or not shown):
        used += len(_write_run(runs[shown])) + 1
        shown += used <= most or not shown
    left = sum(map(len, runs[shown:]))
    return ",".join(map(_write_run, runs[:shown])) + (f" and {left} more" if left else "")


def _runs(ranks: list[int]) -> Iterator[range]:
    start = 0
    while start < len(ranks):
        run = _longest_run(ranks, start)
        if run.step > 1 and len(run) < SHORTEST_STRIDED_RUN:
            run = range(ranks[start], ranks[start] + 1)
        yield run
        start += len(run)


def _longest_run(ranks: list[int], start: int) -> range:
    """Take the ranks from ``start`` on that lie as far apart as the first two of them."""
    end = start + 1
    stride = ranks[end] - ranks[start] if end < len(ranks) else 1
    while end < len(ranks) and ranks[end] - ranks[end - 1] == stride:
        end += 1
    return range(ranks[start], ranks[end - 1] + 1, stride)


def _write_run(run: range) -> str:
    if len(run) == 1:
        return str(run[0])
    if run.step == 1:
        return f"{run[0]}-{run[-1]}"
    return f"{run[0]}-{run[-1]}:{run.step}"
