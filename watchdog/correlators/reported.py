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
    by SIGTERM, so that beside another failure SIGKILL may be their own. Whose own log says that it waited in vain is a victim.
    """
    described = _described(situation)
    reported = {fact.rank for fact, _ in situation.logs.of_type(LauncherFailure) if fact.rank is not None}
    codes = {rank: exit_code_of(situation, rank) or 0 for rank in sorted(reported - described)}
    unexplained = [rank for rank in codes if rank not in situation.view.tracebacks]
    chosen = [rank for rank in unexplained if codes[rank] > 0 or codes[rank] == -signal.SIGABRT]
    failed = [rank for rank, code in codes.items() if code > 0 or code in OWN_SIGNALS]
    killed = [rank for rank, code in codes.items() if code == -signal.SIGKILL] if failed else []
    return sorted(({*chosen} - situation.logs.gave_up | {*killed}) - situation.view.bereaved_ranks)


def reported_line(situation: Situation, rank: int) -> EvidenceLine | None:
    """The launcher's own words of how a rank ended; None if somebody who looked at it knows."""
    facts = (fact for fact, _ in situation.logs.of_type(LauncherFailure) if fact.rank == rank)
    fact = next(facts, None)
    return None if fact is None or rank in _described(situation) else log_line(fact)


def _described(situation: Situation) -> set[int]:
    return {rank.rank for rank in situation.view.job.ranks if rank.exit_code is not None}
