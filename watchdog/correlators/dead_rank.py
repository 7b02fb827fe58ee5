"""A rank that will issue no more: its process ended, and it was not itself waiting for somebody who lives.

Of several that ended, those that went first are to blame. Launchers end the survivors (SIGTERM), watchdogs abort victims
(SIGABRT), and peers raise when a connection breaks; none of these went first.
"""

import signal
from collections.abc import Iterable
from enum import IntEnum

from pardbg.watchdog.correlators.situation import Situation, is_setting_up
from pardbg.watchdog.correlators.wording import count_ranks, name_meeting, name_ranks, since, wait_verb, waiting_line
from pardbg.watchdog.model.evidence import RankDescription
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, Kind
from pardbg.watchdog.model.report import EvidenceLine, Finding
from pardbg.watchdog.positions.position import Position

SHELL_SIGNAL_BASE = 128  # a shell reports death by signal N as 128 + N
ENDED_BY_OTHERS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
ABORTED = frozenset({signal.SIGABRT})


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding: all ranks that went first."""
    ended = sorted(rank for rank in situation.view.ended_ranks if not has_not_started(situation, rank))
    roots = [rank for rank in ended if not situation.standings[rank].fronts]
    if not ended or not _matters(situation, ended):
        return
    roots = [rank for rank in roots if _is_missed(situation, rank)]
    first = _went_first(situation, roots)
    if first:
        yield _describe(situation, tuple(first), ended)


def _matters(situation: Situation, ended: list[int]) -> bool:
    """A job that ended everywhere with exit code 0 has simply finished."""
    if situation.waiting_ranks or len(ended) < len(situation.standings):
        return True
    return any(situation.view.processes[rank].exit_code not in {0, None} for rank in ended)


def _is_missed(situation: Situation, rank: int) -> bool:
    """Whether the end of a rank matters to anybody: one that ended in peace, or nobody knows how, must leave others waiting."""
    if situation.view.processes[rank].exit_code not in {0, None} or not situation.view.looks:
        return True
    asks = any(_asks_store(standing.position) for standing in situation.standings.values())
    return asks or bool(situation.graph.missed_by(rank))


class Fate(IntEnum):
    """How a process ended, the likeliest first cause first."""

    KILLED = 0  # by a signal that no launcher and no watchdog sends
    RAISED = 1  # an exception of its own
    FAILED = 2  # another exit code
    EXITED = 3  # exit code 0
    ENDED_BY_OTHERS = 4  # by the launcher, by its watchdog, or because a peer was lost


def _went_first(situation: Situation, roots: list[int]) -> list[int]:
    """Those whose own end is certain; else those who demonstrably left others waiting; else whoever is left over.

    An exit code alone says little: peers that lose a connection end with 1 as well.
    """
    fates = {rank: _fate(situation, rank) for rank in roots}
    certain = [rank for rank in roots if fates[rank] <= Fate.RAISED]
    if certain:
        first = min(fates[rank] for rank in certain)
        return [rank for rank in certain if fates[rank] == first]
    broken = _broken_connections(situation)
    own = [rank for rank in roots if fates[rank] < Fate.ENDED_BY_OTHERS and rank not in broken]
    own = [rank for rank in own if not _may_have_waited(situation, rank)]
    proven = [rank for rank in own if _left_others_waiting(situation, rank)]
    if proven:
        return proven
    others = {rank for rank in situation.view.ended_ranks if rank not in own}
    explained = all(_fate(situation, rank) is Fate.ENDED_BY_OTHERS or situation.standings[rank].fronts for rank in others)
    return own if explained and len({fates[rank] for rank in own}) == 1 else []


def has_not_started(situation: Situation, rank: int) -> bool:
    """Whether a rank without a process may never have had one: nobody knows how it ended, and the others are being set up."""
    process = situation.view.processes.get(rank)
    if process is None or process.pid is not None or process.exit_code is not None:
        return False
    missed = situation.graph.missed_by(rank)
    return any(is_setting_up(situation, meeting) for meeting in missed)


def was_ended_by_others(situation: Situation, rank: int) -> bool:
    """Whether the launcher or a watchdog ended this rank, so that its recorder shows a rank that lived while others waited."""
    return rank in situation.view.ended_ranks and _fate(situation, rank) is Fate.ENDED_BY_OTHERS


def _may_have_waited(situation: Situation, rank: int) -> bool:
    """An abort without a dump while somebody alive is missing: a watchdog that gave up looks just like that."""
    aborted = signal_number(situation.view.processes[rank].exit_code) in ABORTED
    living = any(root not in situation.view.ended_ranks for root in situation.graph.roots)
    return aborted and living and rank not in situation.view.recordings


def _left_others_waiting(situation: Situation, rank: int) -> bool:
    """Whether the rank's own recorder shows that it ended before an operation others stand at.

    On gloo only after a clean exit: a rank that failed may have been waiting itself, since errors retire operations too.
    """
    if rank not in situation.view.recordings or not situation.graph.missed_by(rank):
        return False
    return situation.view.processes[rank].exit_code == 0 or situation.is_on_device(rank)


def _broken_connections(situation: Situation) -> set[int]:
    """The members of gloo groups that diverged: a mismatch breaks their connections, and they end of that."""
    groups = (found.group for found in situation.divergences)
    return {rank for group in groups for rank in group.ranks if not situation.is_on_device(rank)}


def _fate(situation: Situation, rank: int) -> Fate:
    code = situation.view.processes[rank].exit_code
    number = signal_number(code)
    if number in ENDED_BY_OTHERS or rank in situation.view.bereaved_ranks:
        return Fate.ENDED_BY_OTHERS
    if number is not None and number not in ABORTED:
        return Fate.KILLED
    if rank in situation.view.tracebacks:
        return Fate.RAISED
    if number in ABORTED and _is_shared(situation, code):
        return Fate.ENDED_BY_OTHERS  # watchdogs that gave up waiting
    return Fate.EXITED if code == 0 else Fate.FAILED


def _is_shared(situation: Situation, code: int | None) -> bool:
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
    at_store = (rank for rank, standing in situation.standings.items() if _asks_store(standing.position))
    waiting = {*situation.graph.victims(ranks), *at_store, *(rank for rank in ended if rank not in ranks)}
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


def _asks_store(position: Position | None) -> bool:
    """Whether a rank waits for a key that the dead one may have been about to set."""
    return position is not None and position.cause is Cause.STORE_WAIT


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
