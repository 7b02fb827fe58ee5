"""Dead experts: experts that no token has chosen for so long that chance cannot explain it."""

from collections import deque
from dataclasses import dataclass

from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.routing.alarm import Alarm, Sign

SILENT_FAIR = 40.0
"""Assignments that an expert should have had meanwhile. With a third of the fair load it gets none by chance with exp(-13)."""
SILENT_ROWS = 20
NEARLY_NONE = 1e-3
"""Of the fair load: an expert that has less than this is as good as dead."""
WELL_ROWS = 8
REVIVALS_KEPT = 64


@dataclass(frozen=True, slots=True)
class Silence:
    """Since when an expert had no tokens: row and step, and the fair load summed up to then."""

    row: int
    step: int
    fair: float


class DeadExpertsWatch:
    """Raises `Kind.DEAD_EXPERTS` of one layer. Memory: one small object for each silent expert."""

    def __init__(self, layer: int) -> None:
        self.alarm = Alarm(Kind.DEAD_EXPERTS, layer, "share of experts without tokens", rise=1, fall=WELL_ROWS)
        self._row, self._fair = 0, 0.0
        self._silent: dict[int, Silence] = {}
        self._revivals: deque[int] = deque(maxlen=REVIVALS_KEPT)

    def restart(self) -> None:
        """Forgets who was silent: what follows is a new beginning of the same layer."""
        self._silent = {}

    def feed(self, step: int, counts: tuple[int, ...], fair: float) -> None:
        """Takes the counts of a row and the mean of them."""
        self._listen(step, counts, fair)
        self._row += 1
        self._fair += fair
        dead = sorted(expert for expert, silence in self._silent.items() if self._too_long(silence))
        self.alarm.update(
            Sign(
                step=step,
                value=len(dead) / len(counts),
                severity=len(dead),
                since=min((self._silent[expert].step for expert in dead), default=None),
                suspected=bool(dead),
                certain=bool(dead) and not self._reviving(len(dead)),
                well=not dead,
                experts=tuple(dead),
            )
        )

    def _listen(self, step: int, counts: tuple[int, ...], fair: float) -> None:
        least = fair * NEARLY_NONE
        if not self._silent and min(counts) > least:
            return
        silent = {expert for expert, count in enumerate(counts) if count <= least}
        for expert in self._silent.keys() - silent:
            if self._too_long(self._silent.pop(expert)):
                self._revivals.append(self._row)
        for expert in silent - self._silent.keys():
            self._silent[expert] = Silence(self._row, step, self._fair)

    def _too_long(self, silence: Silence) -> bool:
        return self._row - silence.row >= SILENT_ROWS and self._fair - silence.fair >= SILENT_FAIR

    def _reviving(self, dead: int) -> bool:
        """Whether balancing is bringing experts back, as it does after a beginning: lately as many as are still dead."""
        return sum(row > self._row - SILENT_ROWS for row in self._revivals) >= dead
