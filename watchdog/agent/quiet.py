"""For how long a rank shows no sign of life, and for how long it may. Pure: signs and times in, seconds out.

A rank that counts its steps is alive while they go on; any other one while its main thread goes to sleep and wakes, which it
does not while it waits in a collective. Neither proves a hang: that is for the scan to say.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from pardbg.collectors.vitals.signs import Signs

_STEPS = 20
"""A pause counts for so many times its own length: as long as so many steps of that length would take."""
_SHORTEST_PAUSE_S = 2.5
"""Shorter ones are no pauses, but the time between two looks."""
_PAUSES_KEPT = 64
_LONGEST_BETWEEN_LOOKS_S = 5.0
"""If nobody looked for longer, the rank was not seen to be silent."""


@dataclass(frozen=True)
class Limits:
    """How long a rank may be silent, seconds.

    Attributes:
        floor_s: at least so long in training, whatever its habit.
        habit: at least so many times its longest pause of late.
        cap_s: never longer: half of the shortest timeout that PyTorch gives a group, 10 minutes, after which jobs kill
            themselves and the evidence with them.
        phases: floors for what ranks do beside training steps.
    """

    floor_s: float = 30.0
    habit: float = 3.0
    cap_s: float = 300.0
    phases: dict[str, float] = field(default_factory=lambda: {"checkpoint": 120.0, "compile": 300.0, "evaluation": 300.0})


class _Pause(NamedTuple):
    length_s: float
    ended_at_s: float


class Quiet:
    """One rank."""

    def __init__(self, now_s: float) -> None:
        self._mark: tuple[object, ...] = ()
        self._changed_at_s = self._looked_at_s = now_s
        self._pauses: deque[_Pause] = deque(maxlen=_PAUSES_KEPT)
        self._phase = ""
        self._stirred_at_s = float("-inf")

    def feed(self, signs: Signs, now_s: float) -> None:
        """Takes in one look. Times are of the monotonic clock."""
        unseen_s = now_s - self._looked_at_s - _LONGEST_BETWEEN_LOOKS_S
        if unseen_s > 0:
            self._changed_at_s += unseen_s
        self._looked_at_s = now_s
        mark = (signs.switches,) if signs.step is None else (signs.step, signs.phase)
        if mark == self._mark:
            return
        pause_s = now_s - self._changed_at_s
        if self._mark:
            self._stirred_at_s = now_s
            if pause_s >= _SHORTEST_PAUSE_S:
                self._pauses.append(_Pause(pause_s, now_s))
        self._mark, self._changed_at_s, self._phase = mark, now_s, signs.phase

    @property
    def quiet_s(self) -> float:
        """Seconds without a sign of life, at the last look."""
        return self._looked_at_s - self._changed_at_s

    @property
    def stirred_at_s(self) -> float:
        """When it was last seen to do something, on the monotonic clock; minus infinity if it never was."""
        return self._stirred_at_s

    def limit_s(self, limits: Limits) -> float:
        """How long it may be silent now."""
        floor_s = limits.phases.get(self._phase, limits.floor_s)
        known_s = [pause.length_s for pause in self._pauses if self._looked_at_s - pause.ended_at_s <= _STEPS * pause.length_s]
        return min(limits.cap_s, max(floor_s, limits.habit * max(known_s, default=0.0)))
