"""Ends of ranks that only their launcher reports, and in a way that does not tell whose fault they were."""

import signal

from pardbg.watchdog.correlators.fates import exit_code_of
from pardbg.watchdog.correlators.log_words import log_line
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.model.log_event import LauncherFailure
from pardbg.watchdog.model.report import EvidenceLine

OWN_SIGNALS = frozenset({-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE})
"""Ends that come of what the process itself did."""


def reported_only(situation: Situation) -> list[int]:
    """The ranks of which only a launcher says how they ended, and that says little.

    Peers that lose a connection end with 1 as well, watchdogs abort who waited too long, and launchers kill what does not end
    by SIGTERM, so that beside another failure SIGKILL may be their own; what only lost a peer is no other failure. But a
    launcher kills nobody before it has noticed a failure: where the only SIGKILL is the first that was noticed, it is not its
    own. Whose own log says that it waited in vain is a victim.
    """
    described = _described(situation)
    reported = {fact.rank for fact, _ in situation.logs.of_type(LauncherFailure) if fact.rank is not None}
    codes = {rank: exit_code_of(situation, rank) or 0 for rank in sorted(reported - described)}
    unexplained = [rank for rank in codes if rank not in situation.view.tracebacks]
    chosen = [rank for rank in unexplained if codes[rank] > 0 or codes[rank] == -signal.SIGABRT]
    bereaved = situation.view.bereaved_ranks
    failed = [rank for rank, code in codes.items() if (code > 0 or code in OWN_SIGNALS) and rank not in bereaved]
    killed = [rank for rank, code in codes.items() if code == -signal.SIGKILL] if failed else []
    killed = [] if len(killed) == 1 and killed == _called_causes(situation) else killed
    return sorted(({*chosen} - situation.logs.gave_up | {*killed}) - bereaved)


def _called_causes(situation: Situation) -> list[int]:
    """The ranks whose ends launchers noticed first, one a launcher, without those that only lost a peer."""
    reports = situation.logs.of_type(LauncherFailure)
    ranks = {event.rank for _, event in reports if event.is_called_cause and event.rank is not None}
    return sorted(ranks - situation.view.bereaved_ranks)


def reported_line(situation: Situation, rank: int) -> EvidenceLine | None:
    """The launcher's own words of how a rank ended; None if somebody who looked at it knows."""
    facts = (fact for fact, _ in situation.logs.of_type(LauncherFailure) if fact.rank == rank)
    fact = next(facts, None)
    return None if fact is None or rank in _described(situation) else log_line(fact)


def _described(situation: Situation) -> set[int]:
    return {rank.rank for rank in situation.view.job.ranks if rank.exit_code is not None}
