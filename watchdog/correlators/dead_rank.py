"""A rank that will issue no more: its process ended, and it was not itself waiting for somebody who lives.

Of several that ended, those that went first are to blame. Launchers end the survivors (SIGTERM), watchdogs abort victims
(SIGABRT), and peers raise when a connection breaks; none of these went first.
"""

import signal
from collections.abc import Iterable

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, name_meeting, name_ranks, since, wait_verb, waiting_line
from pardbg.watchdog.model.evidence import RankDescription
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, Kind
from pardbg.watchdog.model.report import EvidenceLine, Finding

SHELL_SIGNAL_BASE = 128  # a shell reports death by signal N as 128 + N
ENDED_BY_OTHERS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
ABORTED = frozenset({signal.SIGABRT})


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding: all ranks that went first."""
    ended = sorted(situation.view.ended_ranks)
    roots = [rank for rank in ended if not situation.standings[rank].fronts]
    if not ended or not _matters(situation, ended):
        return
    first = _went_first(situation, roots)
    if first:
        yield _describe(situation, tuple(first), ended)


def _matters(situation: Situation, ended: list[int]) -> bool:
    """A job that ended everywhere with exit code 0 has simply finished."""
    if situation.waiting_ranks or len(ended) < len(situation.standings):
        return True
    return any(situation.view.processes[rank].exit_code not in {0, None} for rank in ended)


def _went_first(situation: Situation, roots: list[int]) -> list[int]:
    """The roots of the lowest tier that is populated: see `_tier`."""
    tiers = {rank: _tier(situation, rank) for rank in roots}
    broken = _broken_connections(situation)
    tiers = {rank: tier for rank, tier in tiers.items() if tier <= _OWN_FAULT or rank not in broken}
    best = min(tiers.values(), default=None)
    return [] if best is None or best == _LAST_TIER else [rank for rank, tier in tiers.items() if tier == best]


def _broken_connections(situation: Situation) -> set[int]:
    """The members of gloo groups that diverged: a mismatch breaks their connections, and they end of that."""
    return {rank for found in situation.divergences for rank in found.group.ranks if not situation.is_on_device(rank)}


_OWN_FAULT = 1
_LAST_TIER = 4


def _tier(situation: Situation, rank: int) -> int:
    """0: killed by a signal no launcher sends; 1: own exception; 2: other codes; 3: clean exit; 4: ended by others."""
    code = situation.view.processes[rank].exit_code
    number = signal_number(code)
    if number in ENDED_BY_OTHERS:
        return _LAST_TIER
    if number is not None and number not in ABORTED:
        return 0
    if rank in situation.view.tracebacks:
        return 1
    if number in ABORTED and len(situation.view.processes) > 1 and _share_fate(situation, rank):
        return _LAST_TIER  # a watchdog that gave up waiting
    return 3 if code == 0 else 2


def _share_fate(situation: Situation, rank: int) -> bool:
    code = situation.view.processes[rank].exit_code
    return sum(process.exit_code == code for process in situation.view.processes.values()) > 1


def signal_number(code: int | None) -> int | None:
    """The signal behind an exit code: -9 as Python writes it, 137 as shells do."""
    if code is None or (0 <= code <= SHELL_SIGNAL_BASE):
        return None
    return -code if code < 0 else code - SHELL_SIGNAL_BASE


def _cause(situation: Situation, rank: int) -> Cause | None:
    code = situation.view.processes[rank].exit_code
    if signal_number(code) is not None:
        return Cause.SIGNAL
    if rank in situation.view.tracebacks:
        return Cause.EXCEPTION
    return None if code is None else Cause.EXITED


def _describe(situation: Situation, ranks: tuple[int, ...], ended: list[int]) -> Finding:
    causes = {_cause(situation, rank) for rank in ranks}
    missed = [meeting for rank in ranks for meeting in situation.graph.missed_by(rank)]
    meeting = min(missed, key=lambda meeting: situation.waiting_since_ns(meeting) or 0, default=None)
    waiting = {*situation.graph.victims(ranks), *(rank for rank in ended if rank not in ranks)}
    victims = tuple(sorted(waiting - set(ranks)))
    ends = "; ".join(f"rank {rank} {_end(situation, rank)}" for rank in ranks[:4])
    where = f" before {name_meeting(situation, meeting)}" if meeting else ""
    return Finding(
        kind=Kind.DEAD_RANK,
        cause=causes.pop() if len(causes) == 1 else None,
        confidence=Confidence.ESTABLISHED,
        culprits=tuple(situation.subject(rank, _end(situation, rank)) for rank in ranks),
        victims=victims,
        group=situation.meeting_group(meeting.key) if meeting else None,
        collective=situation.collective_ref(meeting) if meeting else None,
        since_s=situation.waiting_s(meeting) if meeting else None,
        claim=(
            f"{ends}{where}; {count_ranks(victims)} {wait_verb(victims)} or ended after "
            f"{'it' if len(ranks) == 1 else name_ranks(ranks)}{since(situation, meeting) if meeting else ''}"
        ),
        evidence=(*_evidence(situation, ranks), *((waiting_line(situation, meeting),) if meeting else ())),
        advice=("Read the end of this rank's own log first; the errors of the other ranks are consequences.",),
    )


def _end(situation: Situation, rank: int) -> str:
    process: RankDescription = situation.view.processes[rank]
    number = signal_number(process.exit_code)
    if number is not None:
        known = number in {item.value for item in signal.Signals}
        return f"was killed by {signal.Signals(number).name if known else f'signal {number}'}"
    traceback = situation.view.tracebacks.get(rank)
    if traceback is not None:
        return f"ended with {traceback.exception}"
    return "has ended" if process.exit_code is None else f"exited with code {process.exit_code}"


def _evidence(situation: Situation, ranks: tuple[int, ...]) -> Iterable[EvidenceLine]:
    for rank in ranks:
        process = situation.view.processes[rank]
        text = f"process of rank {rank}: state {process.state or 'unknown'}, exit code {process.exit_code}"
        yield situation.view.line(CollectorName.HOST, rank, text)
        traceback = situation.view.tracebacks.get(rank)
        if traceback is not None:
            where = f", raised at {traceback.where}" if traceback.where else ""
            yield situation.view.line(CollectorName.RANK_LOG, rank, f"{traceback.exception}{where}")
