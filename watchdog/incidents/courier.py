"""One receiver's courier: which letter goes next, and when to try again. It waits for nothing itself; see `delivery.py`.

Letters of one incident go in their order; a letter that is not taken does not hold up those of other incidents. A receiver that
is down is tried again for days, at least every `LONGEST_PAUSE_S`; a letter that it will not have (4xx) is given up after
`MOST_REFUSALS` attempts. An Alertmanager gets what is open again every `RESEND_S`, as from Prometheus: it may have been started
anew, and forgets what it does not hear of.
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from pardbg.watchdog.incidents.clock import Clock, as_rfc3339
from pardbg.watchdog.incidents.letters import Event, Letter, new_key
from pardbg.watchdog.incidents.posting import Answer, Outcome
from pardbg.watchdog.incidents.receivers import Receiver, ReceiverKind
from pardbg.watchdog.model.incident import Incident
from pardbg.watchdog.outputs.as_alert import alert

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 300.0
MOST_REFUSALS = 8
KEPT_S = 7 * 86400.0
_ATTEMPTS_BEFORE_GIVING_UP = 20  # a clock that was set forward is no reason
RESEND_S = 60.0
_RESOLVED_FOR_S = 900.0
_LATE_S, _HOLD_S = 60.0, 120.0
"""Alertmanager gathers news for `group_wait` (30 s) before it tells anyone. Of a hang that it hears of late, and of its end in
the same moment, nobody would be told: so the end waits."""
_IDLE_S = 30.0
_AT_ONCE = 50


class Mailbox(Protocol):
    """What a courier needs of `Keeper`."""

    def heads(self, receiver: str) -> Sequence[Letter]:
        """The first letter of each incident."""

    def body_of(self, key: str) -> str | None:
        """What a letter says."""

    def remove(self, key: str) -> None:
        """It was taken."""

    def count_refusal(self, key: str) -> None:
        """It was refused."""

    def open_ones(self) -> Sequence[Incident]:
        """Incidents that last."""

    def closed_since(self, moment: str) -> Sequence[Incident]:
        """Incidents that ended lately."""


class Courier:
    """Call `step` again and again from one thread.

    Attributes:
        counts: ``sent``, ``retries``, ``given_up``, ``resent``.
        problem: why letters wait or were given up; empty after one that was taken.
    """

    def __init__(
        self, receiver: Receiver, mailbox: Mailbox, clock: Clock, post: Callable[[Receiver, str, str], Answer]
    ) -> None:
        self._receiver, self._mailbox, self._clock, self._post = receiver, mailbox, clock, post
        self.counts: Counter[str] = Counter()
        self.problem = ""
        self._failures = 0
        self._free_at_s = self._resend_at_s = float("-inf")
        self._attempts: Counter[str] = Counter()
        self._held_until_s: dict[str, float] = {}

    def step(self) -> float:
        """Sends one letter at most, and says after how many seconds there may be something to do."""
        now_s = self._clock.steady_s()
        if now_s < self._free_at_s:
            return self._free_at_s - now_s
        heads = self._mailbox.heads(self._receiver.name)
        letter = self._choose(heads, now_s)
        if letter is not None:
            self._deliver(letter, now_s)
            return 0.0
        if self._receiver.kind is ReceiverKind.ALERTMANAGER and now_s >= self._resend_at_s:
            self._resend(frozenset(head.incident for head in heads), now_s)
        moments = [self._held_until_s.get(head.incident, now_s) - now_s for head in heads]
        return max(0.0, min([*moments, _IDLE_S]))

    def _choose(self, heads: Sequence[Letter], now_s: float) -> Letter | None:
        """Of those that may go now the one that was tried least: a letter that makes the receiver fall stops no others."""
        free = [head for head in heads if self._held_until_s.get(head.incident, now_s) <= now_s]
        return min(free, key=lambda head: self._attempts[head.key], default=None)

    def _deliver(self, letter: Letter, now_s: float) -> None:
        body = self._mailbox.body_of(letter.key)
        if body is None:  # a newer one has taken its place
            return
        answer = self._post(self._receiver, body, letter.key)
        self._attempts[letter.key] += 1
        if answer.outcome is Outcome.TAKEN:
            self._taken(letter, now_s)
        elif answer.outcome is Outcome.LATER:
            self._later(letter, answer, now_s)
        else:
            self._refused(letter, answer, now_s)

    def _taken(self, letter: Letter, now_s: float) -> None:
        self._forget(letter)
        self.counts["sent"] += 1
        self._failures, self.problem = 0, ""
        is_late = self._clock.wall_s() - letter.made_at_s > _LATE_S
        if is_late and letter.event is Event.OPENED and self._receiver.kind is ReceiverKind.ALERTMANAGER:
            self._held_until_s[letter.incident] = now_s + _HOLD_S

    def _later(self, letter: Letter, answer: Answer, now_s: float) -> None:
        self.counts["retries"] += 1
        self._pause(answer, now_s)
        is_old = self._clock.wall_s() - letter.made_at_s > KEPT_S
        if is_old and self._attempts[letter.key] >= _ATTEMPTS_BEFORE_GIVING_UP:
            self._give_up(letter, answer)

    def _refused(self, letter: Letter, answer: Answer, now_s: float) -> None:
        self.problem = answer.words
        if letter.refusals + 1 >= MOST_REFUSALS:
            self._give_up(letter, answer)
            return
        self.counts["retries"] += 1
        self._mailbox.count_refusal(letter.key)
        self._held_until_s[letter.incident] = now_s + _pause_s(letter.refusals)

    def _give_up(self, letter: Letter, answer: Answer) -> None:
        self._forget(letter)
        self.counts["given_up"] += 1
        self.problem = f"gave up telling that {letter.incident} was {letter.event.value}: {answer.words}"

    def _forget(self, letter: Letter) -> None:
        self._mailbox.remove(letter.key)
        self._attempts.pop(letter.key, None)
        self._held_until_s.pop(letter.incident, None)

    def _pause(self, answer: Answer, now_s: float) -> None:
        self.problem = answer.words
        self._free_at_s = now_s + max(_pause_s(self._failures), min(answer.wait_s, LONGEST_PAUSE_S))
        self._failures += 1

    def _resend(self, with_letters: frozenset[str], now_s: float) -> None:
        """All that is open, and what ended lately, but incidents of which letters wait: those come first."""
        self._resend_at_s = now_s + RESEND_S
        since = as_rfc3339(self._clock.wall_s() - _RESOLVED_FOR_S)
        incidents = (*self._mailbox.open_ones(), *self._mailbox.closed_since(since))
        standing = [alert(incident) for incident in incidents if incident.id not in with_letters]
        for start in range(0, len(standing), _AT_ONCE):
            answer = self._post(self._receiver, json.dumps(standing[start : start + _AT_ONCE]), new_key())
            if answer.outcome is Outcome.TAKEN:
                self.counts["resent"] += 1
                self._failures, self.problem = 0, "" if self._failures else self.problem
            elif answer.outcome is Outcome.REFUSED:
                self.problem = answer.words
            else:
                self._pause(answer, now_s)
                self._resend_at_s = self._free_at_s
                return


def _pause_s(failures: int) -> float:
    """Twice as long each time, with jitter: agents of a whole cluster must not come back at once."""
    return min(FIRST_PAUSE_S * 2.0 ** min(failures, 20), LONGEST_PAUSE_S) * random.uniform(0.5, 1.0)
