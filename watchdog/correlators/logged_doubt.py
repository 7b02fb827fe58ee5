"""Exceptions that may be a rank's own, or what others did to it: a library of communication failed, and did not say why.

Nobody is accused: whoever raised one may have gone first, and so may a rank whose log says nothing.
"""

from collections.abc import Iterable

from pardbg.watchdog.correlators.log_words import MAX_LINES, sees_waits
from pardbg.watchdog.correlators.logged_failure import error_words
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import name_ranks
from pardbg.watchdog.graph.log_facts import Failure
from pardbg.watchdog.model.names import CollectorName, Confidence, Kind
from pardbg.watchdog.model.report import Finding
from pardbg.watchdog.store.seen_ranks import doubted

MAX_TOLD = 4


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding, where no log tells of an error that is clearly a rank's own; of waits `logged_wait` speaks."""
    failures = [failure for failure in situation.doubtful_failures.values() if failure.rank in situation.standings]
    is_explained = sees_waits(situation) or situation.own_failures or situation.logs.tells_of_waits
    if failures and not is_explained:
        yield _describe(situation, failures)


def _describe(situation: Situation, failures: list[Failure]) -> Finding:
    ranks = [failure.rank for failure in failures]
    bereaved = {*situation.view.bereaved_ranks, *situation.logs.bereaved} - {*ranks}
    silent = [rank for rank in situation.standings if rank not in ranks and rank not in bereaved]
    candidates = doubted(situation.view, silent)
    may_be = f"; that may be {name_ranks(list(candidates))}" if candidates else ""
    candidates |= {failure.rank: f"its log holds: {error_words(failure.text)}" for failure in failures}
    told = "; ".join(f"rank {failure.rank} failed with {error_words(failure.text)}" for failure in failures[:MAX_TOLD])
    return Finding(
        kind=Kind.INSUFFICIENT_EVIDENCE,
        confidence=Confidence.SUGGESTED,
        candidates=tuple(situation.subject(rank, why) for rank, why in sorted(candidates.items())),
        victims=tuple(sorted(bereaved)),
        claim=f"{told}, and whether by itself or because another rank had gone is not told{may_be}",
        evidence=tuple(
            situation.view.line(CollectorName.RANK_LOG, failure.rank, failure.text) for failure in failures[:MAX_LINES]
        ),
        advice=("Bring the whole logs of the ranks that say nothing; NCCL_DEBUG=WARN makes NCCL say why it failed.",),
    )
