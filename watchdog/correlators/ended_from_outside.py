"""Every rank has ended, and by nothing that a rank did, as far as was seen: nobody is to blame.

A launcher, a scheduler or a person ended them, or the machine did.
"""

from collections.abc import Iterable

from pardbg.watchdog.correlators.fates import Fate, fate_of, name_signal, signal_of, were_killed_together
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import name_ranks
from pardbg.watchdog.model.names import Confidence, Kind
from pardbg.watchdog.model.report import EvidenceLine, Finding


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding. It gives way to every other one."""
    view = situation.view
    if not situation.is_over or not view.heartbeats or situation.waiting_ranks:
        return  # of ranks that wait `unexplained` speaks
    wordless = sorted(view.ended_ranks if were_killed_together(situation) else view.silent_ranks)
    ended = [rank for rank in sorted(view.ended_ranks) if fate_of(situation, rank) is Fate.ENDED_BY_OTHERS]
    if len(wordless) + len(ended) < len(view.ended_ranks):
        return
    yield Finding(
        kind=Kind.INSUFFICIENT_EVIDENCE,
        confidence=Confidence.SUGGESTED,
        claim=_claim(situation, wordless, ended),
        evidence=tuple(_evidence(situation, [*wordless, *ended])),
        advice=("Ask who ended it: the scheduler's log, the kernel's log (out of memory), the launcher's own output.",),
    )


def _claim(situation: Situation, wordless: list[int], ended: list[int]) -> str:
    if not ended:
        return "every rank was killed at once, from outside: none left a last word"
    signals = {number for rank in ended if (number := signal_of(situation, rank)) is not None}
    names = " and ".join(map(name_signal, sorted(signals)))
    if wordless:
        return f"{name_ranks(wordless)} left no last word, the others were ended from outside: nothing says who went first"
    if len(signals) == len({signal_of(situation, rank) for rank in ended}):
        return f"every rank was ended by {names}, from outside; that any of them waited for another was not seen"
    return "every rank ended because of another one, and nothing was seen of the one that went first"


def _evidence(situation: Situation, ranks: list[int]) -> Iterable[EvidenceLine]:
    for rank in ranks[:4]:
        beat = situation.view.heartbeats.get(rank)
        if beat is not None:
            last = "none that it has finished" if beat.step is None else f"{beat.step}"
            yield situation.view.heartbeat_line(rank, f"rank {rank}: its page holds no reason; last step: {last}")
