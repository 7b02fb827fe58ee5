"""Which of the agents of a job leads: scans it, opens the one incident and raises the one alert.

The one with the lowest rank leads, whether it has noticed anything or not: to be asked about a job means that another agent
suspects it. Where agents have the order of the job's nodes, only those before this one are asked, a few at a time, until one
answers; so nobody asks a thousand. One that gives no answer is waited for, `SILENCE_S` in all, and then passed over.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

SILENCE_S = 15.0
_AT_ONCE = 4


class Word(NamedTuple):
    """What another agent says of a job: its own lowest rank, and its open incident."""

    lowest: int
    incident: str = ""


class Part(Enum):
    """What an agent has to do."""

    LEAD = "lead"
    FOLLOW = "follow"
    WAIT = "wait"


Ask = Callable[[str], Word | None]
"""Asks one agent about the job, which it then suspects, too; None: it knows no such job. `OSError`: it gives no answer."""


@dataclass
class Leading:
    """The question for one job. ``before`` are the agents to ask: those before this one, or all if there is no order."""

    before: Sequence[str]
    lowest: int
    ask: Ask
    _silent_since_s: dict[str, float] = field(default_factory=dict)

    def decide(self, clock: Callable[[], float] = time.monotonic) -> Part:
        """Asks around. Deadline: that of ``ask``, times the number of agents in a row that do not answer, by four."""
        for word in self._words(clock):
            if word is None:
                return Part.WAIT
            if word.lowest == self.lowest:  # our own
                continue
            if word.incident:
                return Part.FOLLOW
            if word.lowest < self.lowest:
                return Part.WAIT
        return Part.LEAD

    def _words(self, clock: Callable[[], float]) -> Iterator[Word | None]:
        """In order; None for one that may still answer."""
        with ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="ask-agents") as pool:
            for start in range(0, len(self.before), _AT_ONCE):
                asked = [(address, pool.submit(self.ask, address)) for address in self.before[start : start + _AT_ONCE]]
                for address, answer in asked:
                    try:
                        word = answer.result()
                    except OSError:
                        since_s = self._silent_since_s.setdefault(address, clock())
                        if clock() - since_s < SILENCE_S:
                            yield None
                        continue
                    self._silent_since_s.pop(address, None)
                    if word is not None:
                        yield word
