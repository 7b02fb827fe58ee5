"""A GPU of a host is at fault by the host's kernel log, and nothing tells whose it is: the host is named, no rank.

Only where all have entered the same operation and none finishes, so that nothing else explains the standstill.
"""

from collections.abc import Iterable

from pardbg.watchdog.correlators.device_at_fault import ADVICE
from pardbg.watchdog.correlators.device_stuck import ask_devices, is_device_stuck
from pardbg.watchdog.correlators.host_faults import HostFault, device_faults
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, name_meeting, since, wait_verb, waiting_line
from pardbg.watchdog.graph.meetings import Meeting
from pardbg.watchdog.model.names import Confidence, Kind
from pardbg.watchdog.model.report import Finding


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding: the errors of one host reach every operation of its ranks."""
    if not situation.view.kernel.unclaimed:
        return
    for meeting in situation.graph.dead_ends:
        if meeting.is_full and not is_device_stuck(situation, meeting) and not situation.is_blamed_on_device(meeting):
            faults = device_faults(situation, meeting)
            if faults:
                yield _describe(situation, meeting, [fault for fault in faults if fault.cause is faults[0].cause])
                return


def _describe(situation: Situation, meeting: Meeting, faults: list[HostFault]) -> Finding:
    hosts = tuple(fault.subject() for fault in faults)
    victims = tuple(sorted({*meeting.entered, *situation.graph.victims([meeting.key])}))
    told = "; ".join(f"the kernel log of {fault.host} tells of {fault.told[-1][0]}" for fault in faults[:4])
    is_one = len(faults) == 1 and not faults[0].is_doubtful
    ranks = [rank for rank in victims if situation.view.host(rank) in {fault.host for fault in faults}]
    return Finding(
        kind=Kind.DEVICE_STUCK,
        cause=faults[0].cause,
        confidence=Confidence.SUGGESTED,
        culprits=hosts if is_one else (),
        candidates=() if is_one else hosts,
        victims=victims,
        group=situation.meeting_group(meeting.key),
        collective=situation.collective_ref(meeting),
        since_s=situation.waiting_s(meeting),
        claim=(
            f"{told}, and nothing tells which rank's GPU that is; {count_ranks(victims)} {wait_verb(victims)} in "
            f"{name_meeting(situation, meeting)}{since(situation, meeting)}"
        ),
        evidence=(waiting_line(situation, meeting), *(line for fault in faults for line in fault.lines(situation))),
        advice=(ADVICE[faults[0].cause],),
        actions=tuple(ask_devices(situation, ranks)),
    )
