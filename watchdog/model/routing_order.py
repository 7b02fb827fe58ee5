"""Routing counts in the order of their steps, as far as they were not taken back: a job that restarts repeats steps."""

from collections.abc import Iterable, Sequence

from pardbg.watchdog.model.routing import RoutingRow


def in_order(rows: Iterable[RoutingRow]) -> tuple[RoutingRow, ...]:
    """Sorts rows that stand in the order of their writing by step and layer; each layer has one row a step.

    Rows may come late, as asynchronous writers have it. But where a step comes again that lies behind, the job has begun anew
    from there: whatever was written before of that step and later ones has not happened. Cost: that of sorting.
    """
    attempts = _split_attempts(rows)
    kept: dict[tuple[int, int], RoutingRow] = {}
    valid_below: float = float("inf")
    for first_step, attempt in reversed(attempts):
        newest = {(row.step, row.layer): row for row in attempt if row.step < valid_below}  # of two rows the later one
        kept = newest | kept
        valid_below = min(valid_below, first_step)
    return tuple(kept[key] for key in sorted(kept))


def _split_attempts(rows: Iterable[RoutingRow]) -> Sequence[tuple[float, list[RoutingRow]]]:
    """The rows of each attempt, with the step that it began from; the first one has no beginning."""
    attempts: list[tuple[float, list[RoutingRow]]] = [(float("-inf"), [])]
    seen: set[tuple[int, int]] = set()
    newest = -1
    for row in rows:
        key = (row.step, row.layer)
        if row.step < attempts[-1][0] or (key in seen and row.step < newest):
            attempts.append((row.step, []))
            seen.clear()
            newest = row.step
        attempts[-1][1].append(row)
        seen.add(key)
        newest = max(newest, row.step)
    return attempts
