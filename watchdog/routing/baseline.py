"""What is usual for one figure of one layer, robust against the odd step, and from where on a figure is out of line with it."""

from collections import deque
from statistics import median

DEVIATIONS_PER_MAD = 1.4826
"""Standard deviation of a normal figure over its median absolute deviation."""
TIMES_MEDIAN, DEVIATIONS, TIMES_HIGH = 3.0, 6.0, 1.5
HIGH_SHARE = 0.95
"""The figure that this share of the past is below: a load that wanders has been high before; skewed batches are fewer."""


class Baseline:
    """Learns from figures that are older than ``lag`` rows, so that a rise now under way is not yet part of what is usual.

    Held (`hold`) while an alarm lasts: else it would learn the illness. Memory: ``length`` numbers. Settled anew every
    `EVERY` rows only, which then takes about 60 us.

    Attributes:
        median: None until ``least`` figures are known.
        limit: what is above it is out of line; infinite until then.
        rows: figures learnt from, at most ``length``.
    """

    EVERY = 8

    def __init__(self, *, length: int = 256, lag: int = 24, least: int = 16) -> None:
        self._past: deque[float] = deque(maxlen=length)
        self._recent: deque[float] = deque()
        self._lag, self._least, self._due = lag, least, 0
        self.median: float | None = None
        self.limit = float("inf")

    @property
    def rows(self) -> int:
        """Figures that it stands on."""
        return len(self._past)

    def learn(self, value: float) -> None:
        """Takes the figure of one healthy row."""
        self._recent.append(value)
        if len(self._recent) <= self._lag:
            return
        self._past.append(self._recent.popleft())
        self._due -= 1
        if len(self._past) >= self._least and self._due <= 0:
            self._due = self.EVERY
            self._settle()

    def hold(self) -> None:
        """Forgets the newest rows, which an alarm has shown to be part of the illness."""
        self._recent.clear()

    def _settle(self) -> None:
        past = sorted(self._past)
        usual = past[len(past) // 2]
        deviation = DEVIATIONS_PER_MAD * median(abs(value - usual) for value in past)
        self.median = usual
        self.limit = max(TIMES_MEDIAN * usual, usual + DEVIATIONS * deviation, TIMES_HIGH * past[int(HIGH_SHARE * len(past))])
