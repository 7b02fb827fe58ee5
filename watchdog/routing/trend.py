"""Whether a figure of the last rows gets better, stays or grows. A warm-up gets better; a collapse does not."""

from collections import deque
from itertools import islice, pairwise
from math import log

BETTER_THAN = 0.98
"""Mean of the newer half over that of the older: below it, things get better. A decay with a time constant of 1,000 rows
falls by 2 % over 20."""
GROWTH_A_BLOCK = 1.08
BLOCKS, SHORT_BLOCK, LONG_BLOCK = 4, 8, 16
"""Three growths on end, of 8 % in 8 or in 16 rows each: other data move a figure within a few rows, and then it stays;
an illness goes on."""
EVENLY = 0.15
"""Part of the whole growth (of its logarithm) that each of the three has at least: noise too may grow around a jump."""


class Trend:
    """The newest figures of a layer, at most ``rows``."""

    def __init__(self, rows: int = 64) -> None:
        self._values: deque[float] = deque(maxlen=rows)

    def push(self, value: float) -> None:
        """Takes the figure of the next row."""
        self._values.append(value)

    def __len__(self) -> int:
        return len(self._values)

    def improves(self, rows: int | None = None) -> bool:
        """Whether the newer half of the newest rows (None: of all) is better (lower) than the older half."""
        half = (len(self._values) if rows is None else min(rows, len(self._values))) // 2
        if not half:
            return False
        return self._sum(0, half) < BETTER_THAN * self._sum(half, half)

    def grows(self) -> bool:
        """Whether it has grown from block to block, three times on end."""
        return self._grows(SHORT_BLOCK) or self._grows(LONG_BLOCK)

    def lowest(self) -> float:
        """The lowest of them; infinite where there is none."""
        return min(self._values, default=float("inf"))

    def _grows(self, block: int) -> bool:
        if len(self._values) < block * BLOCKS:
            return False
        sums = [self._sum(block * back, block) for back in range(BLOCKS)]
        if min(sums) <= 0:
            return False
        growths = [log(newer / older) for newer, older in pairwise(sums)]
        return min(growths) > max(log(GROWTH_A_BLOCK), EVENLY * sum(growths))

    def _sum(self, back: int, rows: int) -> float:
        """Sum of ``rows`` values, the newest of which is ``back`` rows old."""
        return sum(islice(reversed(self._values), back, back + rows))
