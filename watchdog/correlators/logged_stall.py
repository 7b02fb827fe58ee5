"""Whom Horovod's coordinator misses: ranks that have not submitted what the others wait in.

It names tensors, not the place where a rank stands. Where no rank is missed in all of them, they run different things.
"""

from collections.abc import Iterable

from pardbg.watchdog.correlators.log_words import MAX_LINES, are_logs_alone, log_line
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, name_ranks, wait_verb
from pardbg.watchdog.model.log_event import StallNamed
from pardbg.watchdog.model.names import Confidence, Kind
from pardbg.watchdog.model.report import Finding


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding; a rank that failed by itself is told instead."""
    told = situation.logs.of_type(StallNamed)
    absent = sorted({rank for _, event in told for rank in event.absent if rank in situation.standings})
    is_mutual = not set[int].intersection(*(set(event.absent) for _, event in told)) if told else False
    if not absent or not are_logs_alone(situation) or situation.own_failures:
        return
    victims = tuple(rank for rank in situation.standings if rank not in absent)
    waiting = f"; {count_ranks(victims)} {wait_verb(victims)}" if victims else ""
    waiting = "; each of them waits for what another has not submitted" if is_mutual else waiting
    yield Finding(
        kind=Kind.INSUFFICIENT_EVIDENCE if is_mutual else Kind.MISSING_PARTICIPANT,
        confidence=Confidence.SUGGESTED,
        candidates=tuple(situation.subject(rank, "has not submitted tensors that others wait for") for rank in absent),
        victims=victims,
        claim=f"Horovod misses {name_ranks(absent)} in operations that others have submitted{waiting}",
        evidence=tuple(log_line(fact) for fact, _ in told[:MAX_LINES]),
        advice=(f"Look at what {name_ranks(absent)} did at that time: its stack, and the end of its log.",),
    )
