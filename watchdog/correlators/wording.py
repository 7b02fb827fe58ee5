"""The words that findings share: operations, groups, ranks and times, spelled once."""

from collections.abc import Collection
from datetime import datetime, timezone

from msgspec.structs import replace

from pardbg.watchdog.correlators.situation import NS_PER_S, Situation
from pardbg.watchdog.graph.axes import axis_of
from pardbg.watchdog.graph.groups import Group
from pardbg.watchdog.graph.keys import FROM_STACKS
from pardbg.watchdog.graph.meetings import Meeting
from pardbg.watchdog.model.matching import call_site
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.ranks import fold_briefly
from pardbg.watchdog.model.report import EvidenceLine

EARLIEST_NS, LATEST_NS = 1_400_000_000 * NS_PER_S, 3_000_000_000 * NS_PER_S  # 2014 to 2065: outside it is damage
STACK_DEPTH = 4  # innermost frames in a line of evidence; the stacks file has the rest


def name_ranks(ranks: Collection[int]) -> str:
    """``rank 3`` or ``ranks 0-2,5``; of very many ranges the first."""
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {fold_briefly(ranks)}"


def count_ranks(ranks: Collection[object]) -> str:
    """``1 rank``, ``39 ranks`` or ``no rank``."""
    return f"{len(ranks) or 'no'} rank{'s' if len(ranks) > 1 else ''}"


def wait_verb(ranks: Collection[int]) -> str:
    """``waits`` or ``wait``; of none as of one."""
    return "wait" if len(ranks) > 1 else "waits"


def name_group(group: Group) -> str:
    """A group as people know it: its axis or description before its number."""
    known = axis_of(group) or group.desc
    label = f"{known} group" if known and known != "undefined" else f"group {group.name}" if group.name else "a group"
    return f"{label} [{fold_briefly(group.ranks)}]"


def name_meeting(situation: Situation, meeting: Meeting) -> str:
    """``all_to_all 45265 of the ep group [8-15]`` or ``the transfer from rank 0 to rank 8``."""
    key = meeting.key
    if key.is_p2p:
        ends = [f"rank {rank}" if rank >= 0 else "an unrecorded peer" for rank in (key.src, key.dst)]
        return f"the transfer from {ends[0]} to {ends[1]}"
    group = situation.groups.groups[key.group]
    gathering = situation.gathering(key)
    if gathering is None:
        return f"{situation.collective_ref(meeting).op} {key.seq} of the {name_group(group)}"
    own = situation.own_frame(meeting.waiting[0])
    op = gathering.op or (f"the work that {own.short} waits for" if own is not None else "a collective")
    if gathering.has_members and gathering.op:
        return f"{op} of the {name_group(group)}"
    return f"{op} of the group {group.name}" if group.name else op


def since(situation: Situation, meeting: Meeting) -> str:
    """``, for 312 s`` or ``, since 2026-11-29 14:03:11 UTC``, or nothing if no time is known or none has passed."""
    since_ns = situation.waiting_since_ns(meeting)
    waited_s = situation.waiting_s(meeting)
    return _lasting(waited_s) if waited_s is not None else since_moment(situation, since_ns)


def _lasting(waited_s: float) -> str:
    return f", for {waited_s:.0f} s" if round(waited_s) else ""


def since_moment(situation: Situation, since_ns: int | None) -> str:
    """The same for any moment, epoch ns."""
    waited_s = situation.seconds_since(since_ns)
    if waited_s is not None:
        return _lasting(waited_s)
    if since_ns is None:
        return ""
    if not EARLIEST_NS <= since_ns <= LATEST_NS:
        return ""
    moment = datetime.fromtimestamp(since_ns / NS_PER_S, tz=timezone.utc)
    return f", since {moment:%Y-%m-%d %H:%M:%S} UTC"


def waiting_line(situation: Situation, meeting: Meeting) -> EvidenceLine:
    """What the first waiting member's recorder (or stack) says of the meeting."""
    rank = (meeting.waiting or meeting.entered or meeting.completed)[0]
    found = situation.operation_at(meeting)
    if found is None:
        return stack_line(situation, rank)
    recording, operation = found
    where = call_site(recording.sites[operation.site]) if operation.site >= 0 else None
    issued = f", issued at {where}" if where else ""
    text = f"{name_meeting(situation, meeting)} is outstanding on {name_ranks(_entered_by(situation, meeting))}{issued}"
    return situation.view.line(CollectorName.FLIGHT_RECORDER, rank, text)


def _entered_by(situation: Situation, meeting: Meeting) -> tuple[int, ...]:
    """Those that have issued this very operation: at one number another rank may have issued another one."""
    entered, (group, seq, *_) = meeting.entered or meeting.completed, meeting.key
    if seq is None or meeting.key.is_gathering:
        return entered
    ops = {rank: situation.progress.op(rank, group, seq) for rank in entered}
    return tuple(rank for rank in entered if ops[rank] in {ops[entered[0]], None})


def absent_line(situation: Situation, meeting: Meeting, rank: int) -> EvidenceLine:
    """What an absent member's recorder shows instead."""
    if rank not in situation.view.recordings:
        return stack_line(situation, rank)
    did = _did_there(situation, meeting, rank)
    others = "" if situation.standings[rank].fronts else ", and nothing is outstanding on it"
    return situation.view.line(
        CollectorName.FLIGHT_RECORDER, rank, f"rank {rank} has not issued {name_meeting(situation, meeting)}: {did}{others}"
    )


def _did_there(situation: Situation, meeting: Meeting, rank: int) -> str:
    """``its last collective there is 40``, ``its last transfer there is from rank 0 to rank 4 (finished)``."""
    lane, room = situation.progress.lanes.get((rank, meeting.key.group)), situation.graph.room
    if meeting.key.group == FROM_STACKS:
        return "its recorder shows no transfers"
    if meeting.key.is_p2p and lane is not None and lane.p2p:
        last = lane.p2p[-1]
        ends = [str(end) if end >= 0 else "?" for end in room.ends(rank, situation.groups.groups[meeting.key.group], last)]
        finished = " (finished)" if last.is_done else ""
        return f"its last transfer there is from rank {ends[0]} to rank {ends[1]}{finished}"
    newest = lane.newest if lane is not None else None
    return f"its last collective there is {newest}" if newest else "it has issued nothing there"


def child_words(situation: Situation, rank: int) -> str:
    """``; its child pt_data_worker 4242 is in read of pipe, at __getitem__ (data.py:12)``, or nothing."""
    looks = situation.view.looks.get(rank, ())
    children = {f"{child.name} {child.pid}": child for child in looks[-1].children} if looks else {}
    for stack in situation.view.child_stacks.get(rank, ()):
        thread = stack.main_thread
        own = next((frame for frame in thread.frames if frame.is_own), None) if thread is not None else None
        if own is not None:
            child = children.get(stack.child)
            call = f" in {child.system_call}," if child is not None and child.system_call else ""
            return f"; its child {stack.child} is{call} at {own.short}"
    return ""


def process_lines(situation: Situation, rank: int) -> tuple[EvidenceLine, ...]:
    """What `/proc` says of a rank's process, in one line."""
    looks = situation.view.looks.get(rank)
    if not looks:
        return ()
    look = looks[-1]
    held = f" in {look.system_call}{f' of {look.blocked_on}' if look.blocked_on else ''}" if look.system_call else ""
    still = f", has not run for {look.still_s:.0f} s" if look.still_s and look.still_s >= 1 else ""
    moved = ""
    if len(looks) > 1 and look.moved_bytes is not None and looks[0].moved_bytes is not None:
        moved = f", {look.moved_bytes - looks[0].moved_bytes} bytes moved between the samples"
    text = f"process {look.pid} is in state {look.state}{held}{still}{moved}"
    line = situation.view.line(CollectorName.HOST, rank, text)
    if line.origin != f"/proc/{look.pid}":
        return (line,)
    files = "status" + (", syscall" if look.system_call else "") + (", fd" if look.blocked_on else "")
    return (replace(line, origin=f"{line.origin}/{files}"),)


def heartbeat_line(situation: Situation, rank: int) -> EvidenceLine | None:
    """``step 1234, which ended 312 s ago; in phase checkpoint since 311 s``: what a rank's own probe says; None without one."""
    beat = situation.view.heartbeats.get(rank)
    if beat is None or (beat.step is None and not beat.phase):
        return None
    ended_s, phase_s = situation.seconds_since(beat.step_ended_ns), situation.seconds_since(beat.phase_since_ns)
    ended = f", which ended {ended_s:.0f} s ago" if ended_s is not None else ""
    step = f"step {beat.step}{ended}" if beat.step is not None else "no step finished"
    since_then = f" since {phase_s:.0f} s" if phase_s is not None else ""
    phase = f"; in phase {beat.phase}{since_then}" if beat.phase else ""
    return situation.view.heartbeat_line(rank, f"{step}{phase}")


def stack_line(situation: Situation, rank: int) -> EvidenceLine:
    """The top of a rank's own stack, and what it means."""
    standing = situation.standings[rank]
    if standing.position is None:
        return situation.view.line(CollectorName.STACKS, rank, f"nothing was seen of rank {rank}")
    frames = " < ".join(frame.short for frame in situation.main_frames(rank)[:STACK_DEPTH])
    if not frames:
        return situation.view.line(CollectorName.HOST, rank, f"rank {rank} is {standing.position.words}")
    meaning = f" ({standing.position.rule.words})" if standing.position.rule else ""
    again = ", the same in both samples" if standing.is_still else ""
    return situation.view.line(CollectorName.STACKS, rank, f"{frames}{meaning}{again}")
