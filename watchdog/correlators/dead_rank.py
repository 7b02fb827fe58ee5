"""A rank that will issue no more: its process ended, and it was not itself waiting for somebody who lives.

Of several that ended, those that went first are to blame. Launchers end the survivors (SIGTERM), watchdogs abort victims
(SIGABRT), and peers raise when a connection breaks; none of these went first.
"""

import signal
from collections.abc import Iterable

from pardbg.watchdog.correlators.fates import (
    ABORTED,
    ENDED_BY_OTHERS,
    Fate,
    all_left_in_peace,
    cause_of,
    end_in_words,
    exit_code_of,
    fate_of,
    is_doubtful,
    is_killed_by_log,
    is_killed_by_name,
    memory_notices,
    of_many,
    signal_of,
    was_killed_for_memory,
    were_killed_together,
)
from pardbg.watchdog.correlators.kernel_words import stray_kill_line
from pardbg.watchdog.correlators.log_words import log_line
from pardbg.watchdog.correlators.reported import reported_line, reported_only
from pardbg.watchdog.correlators.situation import NS_PER_S, Situation, is_setting_up
from pardbg.watchdog.correlators.wording import count_ranks, name_meeting, name_ranks, since, wait_verb, waiting_line
from pardbg.watchdog.graph.meetings import Meeting
from pardbg.watchdog.model.heartbeat import EndingKind
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, Kind
from pardbg.watchdog.model.report import EvidenceLine, Finding
from pardbg.watchdog.positions.position import Position

READ_ITS_LOG = "Read the end of this rank's own log first; the errors of the other ranks are consequences."
SAVE_MEMORY = (
    "Give the host or the job more memory (--mem, the container's limit), or need less: fewer loader workers, a smaller "
    "prefetch, no copy of the data set in each of them."
)
LONGEST_TRAINING_PAUSE_S = 5.0  # who is ended after a longer one was perhaps hung
ONE_HOST_S, SEVERAL_HOSTS_S = 1.0, 5.0  # last words closer than this do not tell who went first


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding: all ranks that went first."""
    ended = sorted(rank for rank in situation.view.ended_ranks if not has_not_started(situation, rank))
    roots = [rank for rank in ended if not situation.standings[rank].fronts or _spoke_for_itself(situation, rank)]
    if not ended or not _matters(situation, ended):
        return
    hearsay = reported_only(situation)
    roots = [rank for rank in roots if rank not in hearsay and _is_missed(situation, rank)]
    first = _went_first(situation, roots)
    if first:
        yield _describe(situation, tuple(first), ended)


def _matters(situation: Situation, ended: list[int]) -> bool:
    """A job that ended everywhere with exit code 0 has simply finished."""
    if situation.waiting_ranks or len(ended) < len(situation.standings):
        return True
    return any(exit_code_of(situation, rank) not in {0, None} or fate_of(situation, rank) < Fate.FAILED for rank in ended)


def _is_missed(situation: Situation, rank: int) -> bool:
    """Whether the end of a rank matters to anybody: one that ended in peace, or nobody knows how, must leave others waiting.

    With exit code 0 it does not where all that ended did so: who is left has finished training with them (`teardown_stuck`).
    """
    code = exit_code_of(situation, rank)
    if code not in {0, None} or rank in situation.view.silent_ranks:
        return True
    if not situation.view.looks and (code is None or not all_left_in_peace(situation)):
        return True
    asks = any(_asks_store(standing.position) for standing in situation.standings.values())
    return asks or bool(situation.graph.missed_by(rank))


def _spoke_for_itself(situation: Situation, rank: int) -> bool:
    """Whether its own last word tells how it ended, so that what was outstanding then does not make it a victim."""
    return rank in situation.view.endings and fate_of(situation, rank) not in {Fate.ENDED_BY_OTHERS, Fate.SILENT}


def _went_first(situation: Situation, roots: list[int]) -> list[int]:
    """Those whose own end is certain; else those without a word; else those who demonstrably left others waiting; else all.

    An exit code alone says little: peers that lose a connection end with 1 as well.
    """
    if were_killed_together(situation) and not any(was_killed_for_memory(situation, rank) for rank in roots):
        return []
    fates = {rank: fate_of(situation, rank) for rank in roots}
    certain = _earliest(situation, [rank for rank in roots if fates[rank] <= Fate.RAISED or _chose_to_fail(situation, rank)])
    first = min((fates[rank] for rank in certain), default=Fate.SILENT)
    if first <= Fate.RAISED:
        return [rank for rank in certain if fates[rank] == first]
    broken = _broken_connections(situation)
    abrupt = _went_abruptly(situation, roots, [rank for rank in certain if rank not in broken])
    if abrupt:
        return abrupt
    own = [rank for rank in roots if fates[rank] in {Fate.FAILED, Fate.EXITED} and rank not in broken]
    own = [rank for rank in own if not _may_have_waited(situation, rank)]
    proven = [rank for rank in own if _left_others_waiting(situation, rank)]
    if proven or any(is_doubtful(situation, rank) for rank in own):
        return proven
    others = {rank for rank in situation.view.ended_ranks if rank not in own}
    if not own and (signalled := _signalled_first(situation)):
        return signalled
    explained = all(fate_of(situation, rank) is Fate.ENDED_BY_OTHERS or situation.standings[rank].fronts for rank in others)
    return own if explained and len({fates[rank] for rank in own}) == 1 else []


def _signalled_first(situation: Situation) -> list[int]:
    """The few that somebody ended by a signal while the job trained, before any other rank lost them as a peer."""
    view = situation.view
    times = {rank: ending.at_ns for rank, ending in view.endings.items() if ending.at_ns is not None}
    lost = [times[rank] for rank in view.bereaved_ranks & times.keys()]
    early = [rank for rank, at_ns in times.items() if at_ns < min(lost, default=0)]
    signalled = [rank for rank in early if signal_of(situation, rank) in ENDED_BY_OTHERS]
    steps = [beat.step_ended_ns for beat in view.heartbeats.values() if beat.step_ended_ns is not None]
    if not signalled or len(signalled) < len(early) or 2 * len(early) >= len(view.ended_ranks) or not steps:
        return []
    stood_s = (min(times[rank] for rank in early) - max(steps)) / NS_PER_S
    return [] if stood_s >= LONGEST_TRAINING_PAUSE_S else sorted(early)


def _chose_to_fail(situation: Situation, rank: int) -> bool:
    """Whether the program itself ended with an exit code that says so."""
    is_clear = rank in situation.view.endings and not is_doubtful(situation, rank)
    return is_clear and fate_of(situation, rank) is Fate.FAILED


def _earliest(situation: Situation, ranks: list[int]) -> list[int]:
    """Without those that ended so much later than the first one that clocks and clean-up do not explain it."""
    times = {rank: ending.at_ns for rank in ranks if (ending := situation.view.endings.get(rank)) and ending.at_ns is not None}
    if not times:
        return ranks
    first = min(times, key=lambda rank: (times[rank] or 0, rank))
    kept = []
    for rank in ranks:
        is_near = situation.view.host(rank) == situation.view.host(first)
        limit_s = ONE_HOST_S if is_near else SEVERAL_HOSTS_S
        if times.get(rank, times[first]) - times[first] <= limit_s * NS_PER_S:
            kept.append(rank)
    return kept


def _went_abruptly(situation: Situation, roots: list[int], failed: list[int]) -> list[int]:
    """Those without a last word, where others have one; else those that chose an exit code first.

    Ranks that lose a peer may choose one too, and launchers kill those that do not end: the fewer went first. If neither are
    fewer, both are returned, and nobody is accused.
    """
    silent = [rank for rank in roots if rank in situation.view.silent_ranks]
    alike = _ended_like_the_first(situation, failed)
    speakers = [rank for rank in situation.standings if rank not in silent and _is_heard(situation, rank)]
    are_finished = all(rank in situation.view.ended_ranks and fate_of(situation, rank) is Fate.EXITED for rank in speakers)
    if silent and (not speakers or (are_finished and len(silent) > len(speakers))):
        return []
    if silent and alike and len(silent) >= len(failed):
        return alike if len(silent) > len(failed) else sorted((*silent, *alike))
    return silent or alike


def _ended_like_the_first(situation: Situation, failed: list[int]) -> list[int]:
    """The first of those that chose an exit code, with all that chose the same one."""
    times = {rank: (situation.view.endings[rank].at_ns or 0, rank) for rank in failed}
    first = min(times, key=lambda rank: times[rank], default=None)
    return [] if first is None else [r for r in failed if exit_code_of(situation, r) == exit_code_of(situation, first)]


def _is_heard(situation: Situation, rank: int) -> bool:
    """Whether a rank lives, or something says how it ended."""
    if rank not in situation.view.ended_ranks:
        return rank in situation.view.looks
    return rank in situation.view.endings or exit_code_of(situation, rank) is not None


def has_not_started(situation: Situation, rank: int) -> bool:
    """Whether a rank without a process may never have had one: nobody knows how it ended, and the others are being set up."""
    process = situation.view.processes.get(rank)
    if process is None or process.pid is not None or process.exit_code is not None:
        return False
    missed = situation.graph.missed_by(rank)
    return any(is_setting_up(situation, meeting) for meeting in missed)


def was_ended_by_others(situation: Situation, rank: int) -> bool:
    """Whether the launcher or a watchdog ended this rank, so that its recorder shows a rank that lived while others waited."""
    return rank in situation.view.ended_ranks and fate_of(situation, rank) is Fate.ENDED_BY_OTHERS


def _may_have_waited(situation: Situation, rank: int) -> bool:
    """An abort without a dump while somebody alive is missing: a watchdog that gave up looks just like that."""
    aborted = signal_of(situation, rank) in ABORTED
    living = any(root not in situation.view.ended_ranks for root in situation.graph.roots)
    return aborted and living and rank not in situation.view.recordings


def _left_others_waiting(situation: Situation, rank: int) -> bool:
    """Whether the rank's own recorder shows that it ended before an operation others stand at.

    On gloo only after a clean exit: a rank that failed may have been waiting itself, since errors retire operations too.
    """
    if rank not in situation.view.recordings or not situation.graph.missed_by(rank):
        return False
    return exit_code_of(situation, rank) == 0 or situation.is_on_device(rank)


def _broken_connections(situation: Situation) -> set[int]:
    """The members of gloo groups that diverged: a mismatch breaks their connections, and they end of that."""
    groups = (found.group for found in situation.divergences)
    return {rank for group in groups for rank in group.ranks if not situation.is_on_device(rank)}


def _describe(situation: Situation, ranks: tuple[int, ...], ended: list[int]) -> Finding:
    causes = {cause_of(situation, rank) for rank in ranks}
    missed = [meeting for rank in ranks for meeting in situation.graph.missed_by(rank)]
    meeting = min(
        missed, key=lambda meeting: (meeting.key.is_gathering, situation.waiting_since_ns(meeting) or 0), default=None
    )
    at_store = (rank for rank, standing in situation.standings.items() if _asks_store(standing.position))
    waiting = {*situation.graph.victims(ranks), *at_store, *(rank for rank in ended if rank not in ranks)}
    victims = tuple(sorted(waiting - set(ranks)))
    subjects = tuple(situation.subject(rank, end_in_words(situation, rank)) for rank in ranks)
    is_open = len(ranks) > 1 and any(_chose_to_fail(situation, rank) for rank in ranks)
    return Finding(
        kind=Kind.DEAD_RANK,
        cause=next(iter(causes)) if len(causes) == 1 else None,
        confidence=Confidence.SUGGESTED if is_open else _confidence(situation, ranks),
        culprits=() if is_open else subjects,
        candidates=subjects if is_open else (),
        victims=victims,
        group=situation.meeting_group(meeting.key) if meeting else None,
        collective=situation.collective_ref(meeting) if meeting else None,
        since_s=situation.waiting_s(meeting) if meeting else None,
        claim=_claim(situation, ranks, victims, meeting, is_open=is_open),
        evidence=(*_evidence(situation, ranks), *((waiting_line(situation, meeting),) if meeting else ())),
        advice=(SAVE_MEMORY if causes == {Cause.OOM_KILLED} else READ_ITS_LOG,),
    )


def _claim(
    situation: Situation, ranks: tuple[int, ...], victims: tuple[int, ...], meeting: Meeting | None, *, is_open: bool
) -> str:
    alike: dict[str, list[int]] = {}
    for rank in ranks:
        alike.setdefault(end_in_words(situation, rank), []).append(rank)
    told = [(name_ranks(same), end if len(same) == 1 else of_many(end)) for end, same in list(alike.items())[:4]]
    ends = "; ".join(f"{names} {end}" for names, end in told)
    where = f" before {name_meeting(situation, meeting)}" if meeting else ""
    if is_open:
        return f"{ends}{where}, so close to each other that it cannot be told which of {name_ranks(ranks)} went first"
    if not victims:
        return f"{ends}{where}"
    return (
        f"{ends}{where}; {count_ranks(victims)} {wait_verb(victims)} or ended after "
        f"{'it' if len(ranks) == 1 else name_ranks(ranks)}{since(situation, meeting) if meeting else ''}"
    )


def _confidence(situation: Situation, ranks: tuple[int, ...]) -> Confidence:
    """That a rank was killed follows from its silence only, and that it was for memory from a count of its whole cgroup.

    Whose an unsigned exception is follows from an exit code.
    """
    tracebacks = situation.view.tracebacks
    is_inferred = any(rank in tracebacks and tracebacks[rank].is_by_launcher for rank in ranks) or any(
        (not is_killed_by_log(situation, rank) or is_killed_by_name(situation, rank))
        and (rank in situation.view.silent_ranks or was_killed_for_memory(situation, rank))
        for rank in ranks
    )
    return Confidence.SUPPORTED if is_inferred else Confidence.ESTABLISHED


def _asks_store(position: Position | None) -> bool:
    """Whether a rank waits for a key that the dead one may have been about to set."""
    return position is not None and position.cause is Cause.STORE_WAIT


def _evidence(situation: Situation, ranks: tuple[int, ...]) -> Iterable[EvidenceLine]:
    for rank in ranks:
        process = situation.view.processes[rank]
        text = f"process of rank {rank}: state {process.state or 'unknown'}, exit code {process.exit_code}"
        yield reported_line(situation, rank) or situation.view.line(CollectorName.HOST, rank, text)
        traceback, ending = situation.view.tracebacks.get(rank), situation.view.endings.get(rank)
        if traceback is not None:
            where = f", raised at {traceback.where}" if traceback.where else ""
            is_said = ending is not None and ending.kind is EndingKind.EXCEPTION
            text = f"{traceback.exception}{where}"
            if is_said:
                yield situation.view.heartbeat_line(rank, text)
            else:
                yield situation.view.line(CollectorName.RANK_LOG, rank, text)
        yield from map(log_line, memory_notices(situation, rank)[:1])
        stray = stray_kill_line(situation, rank) if signal_of(situation, rank) == signal.SIGKILL else None
        if stray is not None and not was_killed_for_memory(situation, rank):
            yield stray
        beat = situation.view.heartbeats.get(rank)
        if beat is not None and was_killed_for_memory(situation, rank) and not is_killed_by_log(situation, rank):
            text = (
                f"processes of its memory cgroup killed by the kernel: {beat.oom_kills}, and {beat.later_oom_kills} afterwards"
            )
            yield situation.view.heartbeat_line(rank, text)
