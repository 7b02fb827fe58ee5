"""A device does not finish what it was given: every other member has completed the operation this rank still stands at.

Members that were not seen do not matter: what one has completed, all have entered (`graph/proof.py`).
On gloo there is no device, and a rooted operation may end on one rank before the others: there the same sign means nothing.
"""

from collections.abc import Iterable, Iterator

from pardbg.watchdog.correlators.commands import action_on
from pardbg.watchdog.correlators.host_faults import device_faults
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import (
    count_ranks,
    name_meeting,
    name_ranks,
    since,
    wait_verb,
    waiting_line,
)
from pardbg.watchdog.graph.device_faults import SEVERITY
from pardbg.watchdog.graph.meetings import Meeting
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, Kind
from pardbg.watchdog.model.operations import ROOTED_OPS
from pardbg.watchdog.model.ranks import fold_briefly
from pardbg.watchdog.model.report import Action, EvidenceLine, Finding

MAX_HOSTS = 4
MIN_COMPLETED_ROOTED = 2  # the root of a broadcast may be done alone; two members that are done include one that received


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding for all devices that are stuck: they are seldom independent."""
    meetings = [meeting for meeting in situation.graph.dead_ends if is_device_stuck(situation, meeting)]
    if meetings:
        yield _describe(situation, meetings)


def is_device_stuck(situation: Situation, meeting: Meeting) -> bool:
    """Whether only few are left in the operation while the others have completed it."""
    if not meeting.completed or not meeting.waiting or meeting.unknown or meeting.key.is_p2p:
        return False
    if not all(situation.is_on_device(rank) for rank in meeting.waiting):
        return False
    if situation.collective_ref(meeting).op in ROOTED_OPS and len(meeting.completed) < MIN_COMPLETED_ROOTED:
        return False
    return len(meeting.waiting) == 1 or len(meeting.waiting) < len(meeting.completed)


def _describe(situation: Situation, meetings: list[Meeting]) -> Finding:
    first = meetings[0]
    ranks = sorted({rank for meeting in meetings for rank in meeting.waiting})
    victims = [rank for rank in situation.graph.victims([meeting.key for meeting in meetings]) if rank not in ranks]
    others = "every other member has" if not first.inside else f"{name_ranks(first.completed)} {_have(first.completed)}"
    devices = "the device of rank {0} has" if len(ranks) == 1 else "the devices of ranks {0} have"
    return Finding(
        kind=Kind.DEVICE_STUCK,
        cause=_cause(situation, meetings),
        confidence=Confidence.SUPPORTED,
        culprits=tuple(
            situation.subject(rank, f"its device has not finished {name_meeting(situation, meeting)}; {_others(meeting)}")
            for meeting in meetings
            for rank in meeting.waiting
        ),
        victims=tuple(victims),
        group=situation.meeting_group(first.key),
        collective=situation.collective_ref(first),
        since_s=situation.waiting_s(first),
        claim=(
            f"{devices.format(fold_briefly(ranks))} not finished {name_meeting(situation, first)}, which {others} completed; "
            f"{count_ranks(victims)} {wait_verb(victims)}{' for it' if not victims else ''}{since(situation, first)}"
        ),
        evidence=tuple(line for meeting in meetings for line in _evidence(situation, meeting)),
        advice=("Look for an Xid, ECC or NVLink error of this device in the kernel log before restarting on the same node.",),
        actions=tuple(ask_devices(situation, ranks)),
    )


def _have(ranks: tuple[int, ...]) -> str:
    return "has" if len(ranks) == 1 else "have"


def _others(meeting: Meeting) -> str:
    return f"{name_ranks(meeting.completed)} {_have(meeting.completed)}" if meeting.inside else "all others have"


def _cause(situation: Situation, meetings: list[Meeting]) -> Cause | None:
    """The worst that the drivers of these GPUs report, or their hosts' logs of GPUs that may be theirs; None if nothing is."""
    faults = {situation.device_blamer.fault(rank, meeting) for meeting in meetings for rank in meeting.waiting}
    if faults <= {None}:
        faults = {fault.cause for meeting in meetings for fault in device_faults(situation, meeting, meeting.waiting)}
    return next((cause for cause in SEVERITY if cause in faults), None)


def ask_devices(situation: Situation, ranks: Iterable[int]) -> Iterator[Action]:
    """Where to look for what the driver says of the GPUs of these ranks."""
    hosts = list(dict.fromkeys(situation.view.host(rank) for rank in ranks))
    for host in hosts[:MAX_HOSTS]:
        yield action_on(situation, host, "read the kernel log of the host", "dmesg -T | grep -iE 'xid|nvrm|nvlink'")
        yield action_on(situation, host, "ask the device", "nvidia-smi -q -d ECC,PERFORMANCE,PAGE_RETIREMENT")


def _evidence(situation: Situation, meeting: Meeting) -> list[EvidenceLine]:
    done = meeting.completed[0]
    text = f"{name_meeting(situation, meeting)} is complete on {name_ranks(meeting.completed)}"
    return [waiting_line(situation, meeting), situation.view.line(CollectorName.FLIGHT_RECORDER, done, text)]
