"""Is a wait old enough to be called a hang? Ranks wait for each other all the time; a young wait is nothing yet."""

from collections.abc import Collection
from math import ceil

from pardbg.watchdog.correlators.fates import Fate, fate_of
from pardbg.watchdog.correlators.situation import NS_PER_S, Situation
from pardbg.watchdog.graph.motion import oldest_wait_s
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import ILLNESSES, Cause, Kind
from pardbg.watchdog.model.pauses import longest_gap_ns
from pardbg.watchdog.model.report import Finding
from pardbg.watchdog.store.dump_times import dump_times_ns

LEAST_WAIT_S = 5.0
START_WAIT_S = 30.0  # ranks do not start at once
GAPS = 3  # times the longest pause the job has made before
RECORDED_WAIT_S = 2.0  # by dumps alone: files count as hung, but every running job has operations that are younger than this
CERTAIN = frozenset({Kind.DEAD_RANK, Kind.SLOW_PHASE, Kind.STRAGGLER, Kind.CONFIG_MISMATCH, *ILLNESSES})


class Haste(Noun, frozen=True, kw_only=True):
    """That a verdict comes too early: why, and in how many seconds it will not; None where asking again is of no use."""

    why: str
    missing_s: float | None = None


def find_haste(situation: Situation, verdict: Finding) -> Haste | None:
    """Why the verdict comes too early; None if it does not, or if nobody can tell how old the wait is.

    How old it is, the processes tell, else the dumps do by when they were taken. The contract has evidence from files count as
    hung: only what every running job has at any moment is too young there. Where a watchdog gave up waiting, it has decided.
    """
    if verdict.kind in CERTAIN or _is_held(situation, verdict):
        return None
    if situation.is_over:
        why = _ended_early(situation)
        return Haste(why=why) if why else None
    here = _ranks_waiting(situation, verdict)
    waited_s = oldest_wait_s(situation.view, situation.standings, here or None)
    pause_s = longest_pause_s(situation)
    enough_s = START_WAIT_S if verdict.kind is Kind.INIT_STUCK else patience_s(pause_s)
    if waited_s is None:
        waited_s = None if situation.logs.tells_of_waits else _recorded_wait_s(situation, here or set(situation.waiting_ranks))
        pause_s, enough_s = None, RECORDED_WAIT_S
    if waited_s is None:
        return None
    missing_s = enough_s - waited_s
    if missing_s <= 0:
        return None
    known = f"this job's longest pause is {pause_s:.0f} s; " if pause_s else ""
    return Haste(why=f"still for {waited_s:.1f} s; {known}ask again in {ceil(missing_s)} s", missing_s=missing_s)


def _ended_early(situation: Situation) -> str:
    """Why ranks that were ended from outside may have been well until then; empty if they had stood still for long.

    Where any of them ended by an error of its own, or by its watchdog, it was not from outside.
    """
    if any(fate_of(situation, rank) is not Fate.ENDED_BY_OTHERS for rank in situation.view.ended_ranks):
        return ""
    if situation.view.bereaved_ranks:
        return ""
    beats = situation.view.heartbeats.values()
    ends = [ending.at_ns for ending in situation.view.endings.values() if ending.at_ns is not None]
    steps = [beat.step_ended_ns for beat in beats if beat.step_ended_ns is not None]
    if not ends or not steps:
        return ""
    waited_s = (min(ends) - max(steps)) / NS_PER_S
    if waited_s >= patience_s(max((beat.longest_step_s or 0.0 for beat in beats), default=None)):
        return ""
    return (
        f"the ranks were ended from outside {max(waited_s, 0.0):.1f} s after their last step: too early to say that they hung"
    )


def _is_held(situation: Situation, verdict: Finding) -> bool:
    """Whether the culprits are stopped, and were in both samples."""
    ranks = [subject.rank for subject in verdict.culprits if subject.rank is not None]
    is_stopped = verdict.cause in {Cause.STOPPED, Cause.DEBUGGER}
    return is_stopped and all(situation.standings[rank].is_still for rank in ranks)


def _ranks_waiting(situation: Situation, verdict: Finding) -> set[int]:
    """Those who wait in the very operation of the verdict; none if nobody is seen to."""
    return {
        rank
        for meeting in situation.graph.meetings.values()
        if situation.collective_ref(meeting) == verdict.collective and situation.meeting_group(meeting.key) == verdict.group
        for rank in meeting.waiting
    }


def _recorded_wait_s(situation: Situation, ranks: Collection[int]) -> float | None:
    """How old the oldest operation that one of these ranks stands at was at most when its dump was taken, seconds.

    By one clock, that of the rank's host. None if the dump of any of them tells no credible time.
    """
    standing = {rank: fronts for rank in ranks if (fronts := situation.standings[rank].fronts)}
    taken_ns = dump_times_ns(situation.view.evidence, situation.view.recordings)
    created_ns = {rank: min(front.operation.created_ns for front in fronts) for rank, fronts in standing.items()}
    if not standing or any(rank not in taken_ns or not created_ns[rank] for rank in standing):
        return None
    return max(taken_ns[rank] - created_ns[rank] for rank in standing) / NS_PER_S


def patience_s(pause_s: float | None) -> float:
    """How old a wait must be to count, given the longest pause the job has made before."""
    return max(LEAST_WAIT_S, GAPS * (pause_s or 0.0))


def longest_pause_s(situation: Situation) -> float | None:
    """The longest time between two operations of one rank in its ring, seconds; None without recorders."""
    pauses = [longest_gap_ns(recording) for recording in situation.view.recordings.values()]
    known = [pause for pause in pauses if pause]
    return max(known) / NS_PER_S if known else None
