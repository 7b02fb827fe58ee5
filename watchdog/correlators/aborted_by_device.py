"""Ranks that were aborted, and whose own GPUs had failed by then: these went first, though an abort is mostly a consequence.

A watchdog aborts who waits in vain, so that of several aborts none tells who went first. A fatal error of a rank's own GPU
does, unless it is one that programs mostly make themselves, GPUs of ranks that live on have the like (then it is the fabric),
or somebody else is missing.
"""

from collections.abc import Iterable

from pardbg.watchdog.correlators import dead_rank
from pardbg.watchdog.correlators.device_at_fault import ADVICE, error_words
from pardbg.watchdog.correlators.device_words import device_line
from pardbg.watchdog.correlators.fates import ABORTED, CLOCK_SLACK_NS, signal_of
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, name_meeting, name_ranks, since, wait_verb, waiting_line
from pardbg.watchdog.graph.device_faults import SEVERITY, cause_of_xid, is_of_program
from pardbg.watchdog.graph.meetings import Meeting
from pardbg.watchdog.graph.standing import Stance
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, Kind
from pardbg.watchdog.model.report import EvidenceLine, Finding

_MOST_LINES = 8


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding: all of them whose errors are the worst; of others that ended `dead_rank` speaks."""
    roots = situation.graph.roots
    aborted = [rank for rank in roots if situation.stance(rank) is Stance.ENDED and signal_of(situation, rank) in ABORTED]
    if not aborted or len(aborted) < len(roots) or not situation.view.devices or any(dead_rank.correlate(situation)):
        return
    missed = (meeting for rank in aborted for meeting in situation.graph.missed_by(rank))
    meeting = min(missed, key=lambda meeting: meeting.key, default=None)
    if meeting is None:
        return
    faults = {rank: fault for rank in aborted if (fault := _fault_before(situation, rank, meeting)) is not None}
    living = (rank for rank in situation.standings if rank not in situation.view.ended_ranks)
    if not faults or any(situation.device_blamer.fault(rank, meeting) is not None for rank in living):
        return
    worst = min(faults.values(), key=SEVERITY.index)
    ranks = [rank for rank, fault in faults.items() if fault is worst]
    origins = [rank for rank in ranks if worst is Cause.NVLINK and situation.device_blamer.is_origin(rank, meeting)]
    yield _describe(situation, origins or ranks, worst, meeting)


def _fault_before(situation: Situation, rank: int, meeting: Meeting) -> Cause | None:
    """What went wrong with its GPU before it ended, as far as times are known."""
    device, ending = situation.view.devices.get(rank), situation.view.endings.get(rank)
    fault = situation.device_blamer.fault(rank, meeting)
    if device is None or fault is None or (fault is Cause.XID and is_of_program(device)):
        return None
    times = [xid.at_ns for xid in device.xids if cause_of_xid(xid.code) is fault and xid.at_ns is not None]
    ended_ns = ending.at_ns if ending is not None else None
    is_late = bool(times) and ended_ns is not None and min(times) > ended_ns + CLOCK_SLACK_NS
    return None if is_late else fault


def _describe(situation: Situation, ranks: list[int], fault: Cause, meeting: Meeting) -> Finding:
    victims = tuple(rank for rank in situation.graph.victims(ranks) if rank not in ranks)
    told = {rank: error_words(situation.view.devices[rank], fault) for rank in ranks}
    return Finding(
        kind=Kind.DEAD_RANK,
        cause=Cause.SIGNAL,
        confidence=Confidence.SUPPORTED,
        culprits=tuple(situation.subject(rank, f"was aborted (SIGABRT), and its GPU {told[rank]}") for rank in ranks),
        victims=victims,
        group=situation.meeting_group(meeting.key),
        collective=situation.collective_ref(meeting),
        since_s=situation.waiting_s(meeting),
        claim=(
            f"{name_ranks(ranks)} {'was' if len(ranks) == 1 else 'were'} aborted (SIGABRT) before "
            f"{name_meeting(situation, meeting)}, after {'its' if len(ranks) == 1 else 'each'} GPU {told[ranks[0]]}; "
            f"{count_ranks(victims)} {wait_verb(victims)}{since(situation, meeting)}"
        ),
        evidence=tuple(_evidence(situation, ranks, meeting)),
        advice=(ADVICE[fault],),
    )


def _evidence(situation: Situation, ranks: list[int], meeting: Meeting) -> Iterable[EvidenceLine]:
    for rank in ranks[:_MOST_LINES]:
        yield situation.view.line(CollectorName.HOST, rank, f"process of rank {rank} was ended by SIGABRT")
        line = device_line(situation, rank)
        if line is not None:
            yield line
    yield waiting_line(situation, meeting)
