"""The load of the last rows of a layer taken together: what a batch or two does to it averages out, what stays does not."""

from array import array
from collections import deque
from operator import add, sub

from pardbg.watchdog.routing import floors
from pardbg.watchdog.routing.figures import deficit


class LoadWindow:
    """Counts of the newest ``length`` rows and their sum. Memory: 8 bytes an expert and row."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._rows: deque[array[int]] = deque()
        self._deficits: deque[float] = deque(maxlen=length)
        self.sums: list[int] = []

    def push(self, counts: tuple[int, ...], excess: float) -> None:
        """Takes a row and its deficit over the noise floor, nats."""
        row = array("q", counts)
        if not self._rows:
            self.sums = list(row)
        elif len(self._rows) < self._length:
            self.sums = list(map(add, self.sums, row))
        else:
            self.sums = list(map(add, map(sub, self.sums, self._rows.popleft()), row))
        self._rows.append(row)
        self._deficits.append(excess)

    @property
    def full(self) -> bool:
        """Whether as many rows are in it as it holds."""
        return len(self._rows) == self._length

    def excess(self) -> float:
        """Deficit of the summed load over its noise floor, nats."""
        return deficit_over_noise(self.sums)

    def row_deficit_by_chance(self) -> float:
        """Deficit that a single row of its mean size has by chance, nats."""
        experts = len(self.sums)
        return floors.entropy_deficit(sum(self.sums) / len(self._rows) / experts, experts)

    def persistence(self, excess: float) -> float:
        """Deficit of the sum over the mean one of the rows: 1 where the same experts lead all along, near 0 where not."""
        mean = sum(self._deficits) / len(self._deficits)
        return excess / mean if mean > 0 else 0.0


def deficit_over_noise(counts: tuple[int, ...] | list[int]) -> float:
    """Deficit of the entropy of the load (`figures.deficit`) less what chance alone gives, never below 0, nats."""
    experts = len(counts)
    return max(0.0, deficit(counts) - floors.entropy_deficit(sum(counts) / experts, experts))
