"""The consequences of a verdict: who else waits, where, and behind whom. Reported as set aside, so that nobody starts there."""

from collections.abc import Iterable

from msgspec.structs import replace

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, name_meeting, name_ranks, wait_verb, waiting_line
from pardbg.watchdog.graph.axes import axis_of
from pardbg.watchdog.graph.meetings import Meeting
from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.model.report import CollectiveRef, Finding, GroupRef

Likeness = tuple[str, int | None, str]
MAX_NAMED = 8


def find_consequences(situation: Situation, verdict: Finding, blamed: frozenset[int]) -> tuple[Finding, ...]:
    """The operations besides the verdict's own in which others than the blamed wait, alike ones of sibling groups together."""
    others = (
        meeting
        for meeting in situation.graph.meetings.values()
        if meeting.waiting and not _is_of(situation, meeting, verdict) and not _stands_by_itself(situation, meeting)
    )
    alike = group_alike(situation, (meeting for meeting in others if set(meeting.waiting) - blamed))
    return tuple(_describe(situation, verdict, meetings, blamed) for meetings in alike)


def _stands_by_itself(situation: Situation, meeting: Meeting) -> bool:
    """Whether a finding of its own speaks of this meeting: all are there."""
    return meeting.is_full and (meeting.key.is_p2p or situation.progress.is_whole(meeting.key.group))


def group_alike(situation: Situation, meetings: Iterable[Meeting]) -> list[list[Meeting]]:
    """Puts the same operation of sibling groups together, the one most ranks wait in first."""
    alike: dict[Likeness, list[Meeting]] = {}
    for meeting in meetings:
        alike.setdefault(_likeness(situation, meeting), []).append(meeting)
    return [meetings for _, meetings in sorted(alike.items(), key=_order)]


def _order(item: tuple[Likeness, list[Meeting]]) -> tuple[int, str, int]:
    (op, seq, _), meetings = item
    return (-sum(len(meeting.waiting) for meeting in meetings), op, seq or 0)


def _is_of(situation: Situation, meeting: Meeting, verdict: Finding) -> bool:
    if verdict.collective is None or situation.meeting_group(meeting.key) != verdict.group:
        return False
    here = situation.collective_ref(meeting)
    return (here.op, here.seq, here.src, here.dst) == (
        verdict.collective.op,
        verdict.collective.seq,
        verdict.collective.src,
        verdict.collective.dst,
    )


def _likeness(situation: Situation, meeting: Meeting) -> Likeness:
    key = meeting.key
    group = situation.groups.groups[key.group] if key.group >= 0 else None
    kind = (axis_of(group) or group.desc or group.name) if group else ""
    return situation.collective_ref(meeting).op, key.seq, kind


def name_alike(situation: Situation, meetings: list[Meeting]) -> str:
    """``all_reduce 3 of the dp group [0-3] and 7 like it``."""
    more = f" and {len(meetings) - 1} like it" if len(meetings) > 1 else ""
    return f"{name_meeting(situation, meetings[0])}{more}"


def _describe(situation: Situation, verdict: Finding, meetings: list[Meeting], blamed: frozenset[int]) -> Finding:
    first = meetings[0]
    waiting = sorted({rank for meeting in meetings for rank in meeting.waiting} - blamed)
    behind = sorted({rank for meeting in meetings for rank in (*meeting.needs, *meeting.unknown)})
    whom = name_ranks(behind) if behind else "members that are not recorded"
    where = name_alike(situation, meetings)
    return Finding(
        kind=Kind.MISSING_PARTICIPANT,
        confidence=verdict.confidence,
        waiting_for=tuple(situation.subject(rank, "waits itself, or was not seen") for rank in behind[:MAX_NAMED]),
        victims=tuple(waiting),
        group=refer_to_groups(situation, meetings),
        collective=refer_to_operation(situation, meetings),
        since_s=situation.waiting_s(first),
        claim=(f"{name_ranks(waiting)} {wait_verb(waiting)} in {where} for {whom}: a consequence, {count_ranks(waiting)}"),
        evidence=(waiting_line(situation, first),),
    )


def refer_to_groups(situation: Situation, meetings: list[Meeting]) -> GroupRef | None:
    """The group, or all of them under the name of the first."""
    first = situation.meeting_group(meetings[0].key)
    if first is None or len(meetings) == 1:
        return first
    groups = [situation.groups.groups[index] for index in dict.fromkeys(meeting.key.group for meeting in meetings)]
    members = sorted({rank for group in groups for rank in group.ranks})
    more = f" and {len(groups) - 1} more" if len(groups) > 1 else ""
    return replace(first, name=f"{first.name}{more}", ranks=tuple(members))


def refer_to_operation(situation: Situation, meetings: list[Meeting]) -> CollectiveRef:
    """The operation; without the ends where several transfers are meant."""
    first = situation.collective_ref(meetings[0])
    return first if len(meetings) == 1 else replace(first, src=None, dst=None)
