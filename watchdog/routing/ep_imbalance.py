"""A hot EP rank: the experts of one rank together have far more load than those of the others, which all of them wait for.

The illness is the placement: the load of single experts is moderate, and spread otherwise over the ranks it would be even.
Where a few experts alone are so hot that no placement helps, that is the router's doing and not told here; a collapse, too,
makes some rank hot, and only a rank that is out of all proportion to chance is told beside it.
"""

from math import inf, log, sqrt

from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.routing.alarm import Alarm, Sign
from pardbg.watchdog.routing.figures import ep_loads
from pardbg.watchdog.routing.load_window import LoadWindow
from pardbg.watchdog.routing.trend import Trend

HOT, UNEVEN, PLAIN_HOT, VERY_HOT = 1.2, 1.3, 1.35, 1.6
"""Largest load of a rank over the mean. Recipes budget 1.2 to 1.5 for the worst rank."""
WELL = 1.12
ROW_HOT = 1.15
STEADY = 0.5
"""In every single row the same rank must have ROW_HOT, and half of the excess of the rows together: else a burst, or
a hot spot that moves from rank to rank, would look like a rank that is hot."""
MOST_ROWS, FEWEST_ROWS = 128, 20
"""For so long it must last: where ranks were even before, longer the less hot it is; else, unless it is very hot, the longest:
an untrained router is uneven by up to about 1.5 and gets better within hundreds of steps."""
EVEN_ROWS = 40
CERTAIN_ROWS, WELL_ROWS = 4, 16
NAMED_FROM = 1.2
HELPED = 0.75
"""A better placement must take away a quarter of the excess at least."""
OUT_OF_PROPORTION = 4.0
"""Standard deviations of a rank's load, were the same experts dealt out by chance."""


class EpWatch:
    """Raises `Kind.EP_IMBALANCE` of one layer."""

    def __init__(self, layer: int) -> None:
        self.alarm = Alarm(
            Kind.EP_IMBALANCE, layer, "largest load of an EP rank / mean load", rise=CERTAIN_ROWS, fall=WELL_ROWS
        )
        self._hottest, self._trend, self._even_rows = -1, Trend(MOST_ROWS), 0
        self._first_step: int | None = None
        self._hot_from_first = True

    def restart(self) -> None:
        """Forgets the trend: what follows is a new beginning of the same layer."""
        self._hottest, self._trend, self._even_rows = -1, Trend(MOST_ROWS), 0

    def feed(self, step: int, window: LoadWindow, row_loads: tuple[float, ...], *, collapsed: bool) -> None:
        """Takes a row that ``window`` already holds.

        Args:
            step: of the row.
            window: the rows up to it.
            row_loads: share of each EP rank in this row alone.
            collapsed: whether the router is in collapse, or seems to be.
        """
        ep_size = len(row_loads)
        loads = ep_loads(window.sums, ep_size)
        if loads is None:
            return
        ratio = max(loads) * ep_size
        if self._first_step is None:
            self._first_step = step
        self._follow(loads.index(max(loads)), row_loads)
        if not window.full:
            return
        self._even_rows += ratio < WELL
        self._hot_from_first &= ratio >= HOT
        self.alarm.update(
            Sign(
                step=step,
                value=ratio,
                severity=ratio,
                suspected=ratio >= HOT,
                since=self._first_step if self._hot_from_first else None,
                certain=self._lasts(ratio) and self._by_placement(window.sums, ratio, ep_size, collapsed=collapsed),
                well=self._is_well(loads),
                ep_ranks=tuple(
                    sorted(
                        (rank for rank in range(ep_size) if loads[rank] * ep_size >= NAMED_FROM), key=lambda rank: -loads[rank]
                    )
                ),
            )
        )

    def _follow(self, hottest: int, row_loads: tuple[float, ...]) -> None:
        """Keeps the trend of the rows on end in which one and the same rank is hot."""
        ratio = row_loads[hottest] * len(row_loads)
        if hottest != self._hottest or ratio < ROW_HOT:
            self._hottest, self._trend = hottest, Trend(MOST_ROWS)
        if ratio >= ROW_HOT:
            self._trend.push(ratio - 1)

    def _is_well(self, loads: tuple[float, ...]) -> bool:
        """Whether none of the ranks that were named is hot any more; another one may be, which is another illness."""
        named = self.alarm.illness.ep_ranks if self.alarm.illness is not None else ()
        return all(rank < len(loads) and loads[rank] * len(loads) < WELL for rank in named)

    def _lasts(self, ratio: float) -> bool:
        lasting = len(self._trend) >= self._needed_rows(ratio)
        return lasting and self._trend.lowest() >= STEADY * (ratio - 1) and not self._trend.improves()

    def _needed_rows(self, ratio: float) -> float:
        if self._even_rows < EVEN_ROWS:
            return FEWEST_ROWS if ratio >= VERY_HOT else MOST_ROWS if ratio >= UNEVEN else inf
        if ratio < HOT:
            return inf
        return min(max(FEWEST_ROWS * ((PLAIN_HOT - 1) / (ratio - 1)) ** 2, FEWEST_ROWS), MOST_ROWS)

    def _by_placement(self, sums: list[int], ratio: float, ep_size: int, *, collapsed: bool) -> bool:
        fair = sum(sums) / len(sums)
        chance = sqrt(2 * log(ep_size) / (fair * len(sums) / ep_size))
        if ratio - 1 < OUT_OF_PROPORTION * chance:
            return False
        if not collapsed:
            return best_placement(sums, ep_size) - 1 <= HELPED * (ratio - 1)
        variation = sqrt(max(0.0, sum(count * count for count in sums) / len(sums) - fair * fair)) / fair
        return ratio - 1 > OUT_OF_PROPORTION * variation / sqrt(len(sums) / ep_size)


def best_placement(loads: list[int], ranks: int) -> float:
    """Largest load of a rank over the mean when experts are dealt out anew, the heaviest first and each to the lightest rank.

    Every rank keeps the same number of experts. Within a few per cent of the best there is. Cost: about 0.2 ms for 256 experts.
    """
    room, totals = [len(loads) // ranks] * ranks, [0] * ranks
    for load in sorted(loads, reverse=True):
        lightest = min((rank for rank in range(ranks) if room[rank]), key=totals.__getitem__)
        totals[lightest] += load
        room[lightest] -= 1
    return max(totals) * ranks / sum(loads)
