"""Every member has entered the same operation and none finishes: nobody to blame on the host.

Where two or more communicators stand like that on every rank, it is the communicators that block each other.
"""

import re
from collections.abc import Iterable, Iterator

from pardbg.watchdog.correlators.cascade import group_alike, name_alike, refer_to_groups, refer_to_operation
from pardbg.watchdog.correlators.commands import action_on
from pardbg.watchdog.correlators.device_stuck import is_device_stuck
from pardbg.watchdog.correlators.device_words import device_line
from pardbg.watchdog.correlators.host_faults import HostFault, device_faults, link_faults
from pardbg.watchdog.correlators.logged_network import explain_by_logs
from pardbg.watchdog.correlators.situation import Situation, before_first_operation, is_setting_up
from pardbg.watchdog.correlators.wording import count_ranks, name_meeting, name_ranks, since, wait_verb, waiting_line
from pardbg.watchdog.graph.device_blame import link_ends
from pardbg.watchdog.graph.meetings import Meeting
from pardbg.watchdog.graph.standing import Stance
from pardbg.watchdog.model.names import Cause, Confidence, Kind, Scope
from pardbg.watchdog.model.report import Action, Finding, Subject

_OWN_QUEUE = re.compile(r"ncclLocalOpAppend|SaveProxy")
MIN_COMMUNICATORS = 2
MIN_ENDS = 2
MAX_HOSTS = 4
MAX_EVIDENCE = 8  # lines; a broken fabric stops hundreds of groups


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding for all communicators together, or one per operation that is stuck on its own."""
    stuck = [meeting for meeting in situation.graph.dead_ends if is_stuck(situation, meeting)]
    if not stuck:
        return
    everywhere = _stuck_everywhere(situation)
    if len(everywhere) >= MIN_COMMUNICATORS:
        yield _several(situation, everywhere)
        return
    for alike in group_alike(situation, stuck):
        yield explain_by_logs(situation, _single(situation, alike))


def is_stuck(situation: Situation, meeting: Meeting) -> bool:
    """Whether all members are known to be there, match, and nothing else explains the standstill."""
    if not meeting.waiting or not meeting.is_full or is_device_stuck(situation, meeting):
        return False
    if situation.is_blamed_on_device(meeting) or device_faults(situation, meeting):
        return False  # `device_stuck` speaks of it, or `host_device`
    if half_seen(situation, meeting) or not all(found.is_full for found in _entangled(situation, meeting)):
        return False  # its members also wait elsewhere, and that may be what holds them
    if meeting.key.is_p2p:
        return len(meeting.waiting) > 1
    gathering = situation.gathering(meeting.key)
    if gathering is not None and not gathering.is_described:
        return False
    group = situation.groups.groups[meeting.key.group]
    diverged = any(found.group.index == group.index for found in situation.divergences)
    return situation.progress.is_whole(group.index) and not diverged and not group.claims


def _in_library(situation: Situation, meeting: Meeting) -> bool:
    """Whether a member's native stack shows NCCL itself at a loss: it waits for a slot of its own queue, not for a peer."""
    stacks = (situation.view.native_stacks.get(rank) for rank in meeting.waiting)
    threads = (stack.main_thread for stack in stacks if stack is not None)
    return any(_OWN_QUEUE.match(frame.name) for thread in threads if thread is not None for frame in thread.frames)


def half_seen(situation: Situation, meeting: Meeting) -> tuple[int, ...]:
    """Members whose counters alone show them here, since their dump is cut off: with what arguments is not known."""
    key, recordings = meeting.key, situation.view.recordings
    if key.is_p2p or key.is_gathering:
        return ()
    return tuple(
        rank
        for rank in meeting.waiting
        if rank in recordings
        and recordings[rank].damage
        and key.seq not in situation.progress.lanes[rank, key.group].collectives
    )


def _entangled(situation: Situation, meeting: Meeting) -> Iterator[Meeting]:
    """All meetings that its members wait in together, and the members of those: a batch of transfers is done as a whole."""
    pending, known = [meeting.key], {meeting.key}
    while pending:
        found = situation.graph.meetings[pending.pop()]
        yield found
        fresh = {key for rank in found.waiting for key in situation.graph.room.keys(rank)} - known
        known |= fresh
        pending += fresh


def _stuck_everywhere(situation: Situation) -> list[Meeting]:
    """The operations all members stand at, if there are several of different groups on every rank of the job."""
    room = situation.graph.room
    found: dict[object, Meeting] = {}
    for standing in situation.standings.values():
        if standing.stance is Stance.UNSEEN:
            continue
        if standing.stance is not Stance.WAITING or len(standing.fronts) < MIN_COMMUNICATORS:
            return []
        for front in standing.fronts:
            for key in room.front_keys(front):
                if key not in found:
                    found[key] = room.meet(key)
    unseen = any(meeting.unknown for meeting in situation.graph.dead_ends)
    if (
        unseen
        or situation.divergences
        or any(meeting.absent or meeting.completed or len(meeting.entered) < 2 for meeting in found.values())
    ):
        return []
    return [meeting for meeting in found.values() if not meeting.unknown]


def _single(situation: Situation, meetings: list[Meeting]) -> Finding:
    first = meetings[0]
    entered = {rank for meeting in meetings for rank in meeting.entered}
    victims = sorted(entered.union(situation.graph.victims(meeting.key for meeting in meetings)))
    ends = link_ends(situation.device_blamer, meetings)
    faults = [] if ends else _worst(link_faults(situation, first))
    told = f"; the kernel log of {faults[0].host} tells of {faults[0].told[-1][0]}" if faults else ""
    is_early = is_setting_up(situation, first) or before_first_operation(situation, victims)
    is_weak = first.key.is_gathering or any(fault.is_doubtful for fault in faults)  # stacks have no numbers
    return Finding(
        kind=Kind.INIT_STUCK if is_early and not ends and not faults else Kind.COMM_STUCK,
        cause=Cause.NVLINK if ends else faults[0].cause if faults else Cause.NCCL if _in_library(situation, first) else None,
        culprits=_links(situation, ends) or (tuple(fault.subject() for fault in faults) if len(faults) == 1 else ()),
        confidence=Confidence.SUGGESTED if is_weak else Confidence.SUPPORTED,
        victims=tuple(victims),
        group=refer_to_groups(situation, meetings),
        collective=refer_to_operation(situation, meetings),
        since_s=situation.waiting_s(first),
        claim=(
            f"every member has entered {name_alike(situation, meetings)} with matching arguments and "
            f"{_who_finished(meetings)}: no rank is to blame on the host; "
            f"{count_ranks(victims)} {wait_verb(victims)}{since(situation, first)}{told}"
        ),
        evidence=(
            *(waiting_line(situation, meeting) for meeting in meetings[:MAX_EVIDENCE]),
            *filter(None, (device_line(situation, rank) for rank in ends[:MAX_EVIDENCE])),
            *(line for fault in faults[:MAX_HOSTS] for line in fault.lines(situation)),
        ),
        advice=("Look at the links between these ranks: NIC and NVLink counters, port errors, NCCL warnings.",),
        actions=tuple(_read_links(situation, victims)),
    )


def _worst(faults: list[HostFault]) -> list[HostFault]:
    """Those of one cause: broken NVLinks before ports of the network."""
    return [fault for fault in faults if fault.cause is faults[0].cause]


def _links(situation: Situation, ends: tuple[int, ...]) -> tuple[Subject, ...]:
    """The link between two GPUs; of more the host, whose switch they share. Across hosts nothing is certain."""
    hosts = sorted({host for rank in ends if (host := situation.view.host(rank))})
    why = f"the GPUs of {name_ranks(ends)} report NVLink errors"
    if len(ends) == MIN_ENDS:
        return (Subject(scope=Scope.LINK, ranks=ends, hosts=tuple(hosts), why=why),)
    return tuple(Subject.of_host(host, why, ends) for host in hosts[: len(hosts) == 1])


def _read_links(situation: Situation, ranks: Iterable[int]) -> Iterator[Action]:
    hosts = sorted({host for rank in ranks if (host := situation.view.host(rank))})
    more = f", and of {len(hosts) - MAX_HOSTS} more hosts" if len(hosts) > MAX_HOSTS else ""
    command = "nvidia-smi nvlink -s; rdma link"
    for host in hosts[:MAX_HOSTS]:
        yield action_on(situation, host, f"read the link state of {host}{more}", command)
    if not hosts:
        yield action_on(situation, None, "read the link state of each host", command)


def _who_finished(meetings: list[Meeting]) -> str:
    completed = sorted({rank for meeting in meetings for rank in meeting.completed})
    return f"only {name_ranks(completed)} finished it" if completed else "none finishes"


def _several(situation: Situation, meetings: list[Meeting]) -> Finding:
    first = meetings[0]
    names = "; ".join(name_meeting(situation, meeting) for meeting in meetings[:4])
    return Finding(
        kind=Kind.MULTI_COMM_DEADLOCK,
        confidence=Confidence.SUGGESTED,
        victims=situation.waiting_ranks,
        group=situation.meeting_group(first.key),
        collective=situation.collective_ref(first),
        since_s=situation.waiting_s(first),
        claim=(
            f"operations of {len(meetings)} communicators are outstanding on every rank ({names}); all match and none moves: "
            f"the communicators block each other on the devices, or a link under all of them fails{since(situation, first)}"
        ),
        evidence=tuple(waiting_line(situation, meeting) for meeting in meetings[:MAX_EVIDENCE]),
        advice=("Do not run collectives of several communicators at once on one device, or order them with events.",),
    )
