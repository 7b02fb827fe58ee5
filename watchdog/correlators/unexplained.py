"""Something is wrong, and what was seen cannot say what. This is an answer: it names what is missing."""

from collections.abc import Iterable, Iterator
from itertools import islice

from pardbg.watchdog.correlators import dead_rank, missing_participant
from pardbg.watchdog.correlators.comm_stuck import half_seen, is_stuck
from pardbg.watchdog.correlators.commands import take_stack
from pardbg.watchdog.correlators.device_stuck import is_device_stuck
from pardbg.watchdog.correlators.host_faults import device_faults
from pardbg.watchdog.correlators.situation import Situation, is_setting_up
from pardbg.watchdog.correlators.wording import count_ranks, name_meeting, name_ranks, since, wait_verb, waiting_line
from pardbg.watchdog.graph.meetings import Meeting
from pardbg.watchdog.graph.standing import Stance
from pardbg.watchdog.graph.waits import Node
from pardbg.watchdog.model.host_names import fold_hosts_briefly
from pardbg.watchdog.model.names import Confidence, Kind
from pardbg.watchdog.model.report import Action, Finding

MAX_NAMED = 4
OLD_PICTURE = "its dump is older than what the others' tell: what it has done since is not known"
MAX_ASKED = 3  # hosts that a reader is told how to ask after
NOT_SEEN = {
    Stance.HIDDEN: "may wait in an operation that its recorder does not show",
    Stance.UNSEEN: "its recorder was not seen",
    Stance.IDLE: "waits for nobody, as far as its recorder shows",
}


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding for all waiting that ends where nothing could be seen."""
    open_ends: list[Node] = []
    candidates: dict[int, str] = {}
    for sink in situation.graph.sinks:
        node = next(iter(sink))
        if len(sink) > 1 or (isinstance(node, int) and situation.standings[node].can_be_root):
            continue
        if isinstance(node, int):
            if node in situation.device_blames:
                continue
            open_ends.append(node)
            candidates[node] = _why_unseen(situation, node)
        elif not _is_explained(situation, situation.graph.meetings[node]):
            open_ends.append(node)
            candidates.update(_absentees(situation, situation.graph.meetings[node]))
    if not open_ends:
        open_ends += (dead := _unspoken_dead(situation))
        candidates |= dict.fromkeys(dead, "its process has ended, and nothing says whether it went first")
    if not open_ends:
        return
    circle = [] if candidates else _find_circle(situation, open_ends)
    if circle:
        yield _describe_circle(situation, circle)
        return
    if not any(situation.stance(rank) is Stance.UNSEEN for rank in candidates):  # else it is one of these, not who waits
        candidates |= _waiters(situation, open_ends)
    yield _describe(situation, open_ends, candidates)


def _unspoken_dead(situation: Situation) -> list[int]:
    """Ranks that ended and that others wait for, where their end may as well be a consequence: aborted by a watchdog, say."""
    dead = [rank for rank in situation.graph.roots if situation.stance(rank) is Stance.ENDED]
    if not dead or situation.is_over:
        return []
    is_spoken_of = any(dead_rank.correlate(situation)) or any(missing_participant.correlate(situation))
    return [] if is_spoken_of else dead


def _waiters(situation: Situation, open_ends: list[Node]) -> dict[int, str]:
    """Where everybody was seen and waits, one of them must be missing from what another waits in."""
    meetings = [situation.graph.meetings[node] for node in open_ends if not isinstance(node, int) and node.is_gathering]
    return {rank: f"waits in {name_meeting(situation, meeting)}" for meeting in meetings for rank in meeting.waiting}


def _find_circle(situation: Situation, open_ends: list[Node]) -> list[Meeting]:
    """All operations somebody waits in, if every rank of the job waits and the members of some groups are not known.

    Then somebody who waits in one of them is missing from another.
    """
    meetings = list(situation.graph.meetings.values())
    is_everyone = all(
        standing.stance is Stance.WAITING or rank in situation.graph.room.gatherings.by_rank
        for rank, standing in situation.standings.items()
    )
    is_several = len({meeting.key.group for meeting in meetings}) > 1
    is_open = any(not isinstance(node, int) and not node.is_p2p for node in open_ends)
    is_known = not any(meeting.unknown or meeting.vague or meeting.key.is_p2p for meeting in meetings)
    return meetings if is_everyone and is_several and is_open and is_known else []


def _describe_circle(situation: Situation, meetings: list[Meeting]) -> Finding:
    first = min(meetings, key=lambda meeting: (situation.waiting_since_ns(meeting) or 0, meeting.key))
    waiting = sorted({rank for meeting in meetings for rank in meeting.waiting})
    told = "; ".join(f"{name_ranks(meeting.waiting)} in {name_meeting(situation, meeting)}" for meeting in meetings[:MAX_NAMED])
    return Finding(
        kind=Kind.INIT_STUCK if any(is_setting_up(situation, meeting) for meeting in meetings) else Kind.ORDER_INVERSION,
        confidence=Confidence.SUGGESTED,
        candidates=tuple(situation.subject(rank, "waits, where the members of a group are not recorded") for rank in waiting),
        victims=tuple(rank for rank in situation.waiting_ranks if rank not in waiting),
        group=situation.meeting_group(first.key),
        collective=situation.collective_ref(first),
        since_s=situation.waiting_s(first),
        claim=f"every rank waits and not all members are recorded: they wait for each other: {told}{since(situation, first)}",
        evidence=tuple(waiting_line(situation, meeting) for meeting in meetings[:MAX_NAMED]),
        advice=("Issue the collectives of different groups in the same order on every rank.",),
    )


def _is_explained(situation: Situation, meeting: Meeting) -> bool:
    if is_stuck(situation, meeting) or is_device_stuck(situation, meeting) or situation.is_blamed_on_device(meeting):
        return True
    if meeting.is_full and device_faults(situation, meeting):
        return True  # `host_device` speaks of it
    return any(found.group.index == meeting.key.group for found in situation.divergences)


def _why_unseen(situation: Situation, rank: int) -> str:
    stance = situation.stance(rank)
    is_old = stance is Stance.UNSEEN and rank in situation.progress.behind
    return OLD_PICTURE if is_old else NOT_SEEN.get(stance, NOT_SEEN[Stance.UNSEEN])


def _absentees(situation: Situation, meeting: Meeting) -> dict[int, str]:
    """Who may be the one this meeting waits for: unseen members, or - where members are not known - whoever is idle."""
    if meeting.unknown:
        return {rank: _why_unseen(situation, rank) for rank in meeting.unknown}
    if half := half_seen(situation, meeting):
        return dict.fromkeys(half, "its dump is cut off: what it issued here is not known")
    if meeting.key.is_gathering:
        return dict.fromkeys(meeting.vague, "waits in communication, and its stack does not tell in which")
    if meeting.key.is_p2p or situation.progress.is_whole(meeting.key.group):
        return {}
    loose = (Stance.IDLE, Stance.HOST, Stance.HIDDEN, Stance.UNSEEN)
    return {
        rank: NOT_SEEN.get(standing.stance, "is elsewhere")
        for rank, standing in situation.standings.items()
        if standing.stance in loose
    }


def _describe(situation: Situation, open_ends: list[Node], candidates: dict[int, str]) -> Finding:
    victims = tuple(rank for rank in situation.waiting_ranks if rank not in candidates)
    waiting = victims or situation.waiting_ranks
    meeting = _oldest(situation, open_ends)
    named = f"; it may be {name_ranks(candidates)}" if candidates else ""
    where = f" in {name_meeting(situation, meeting)}{since(situation, meeting)}" if meeting else ""
    return Finding(
        kind=Kind.INSUFFICIENT_EVIDENCE,
        confidence=Confidence.SUGGESTED,
        candidates=tuple(situation.subject(rank, why) for rank, why in sorted(candidates.items())),
        victims=victims,
        group=situation.meeting_group(meeting.key) if meeting else None,
        collective=situation.collective_ref(meeting) if meeting else None,
        since_s=situation.waiting_s(meeting) if meeting else None,
        claim=f"{count_ranks(waiting)} {wait_verb(waiting)}{where}, and what was seen does not say for whom{named}",
        evidence=(waiting_line(situation, meeting),) if meeting and meeting.entered else (),
        advice=_advice(situation, candidates or waiting),
        actions=tuple(_actions(situation, candidates)),
    )


def _advice(situation: Situation, named: Iterable[int]) -> tuple[str, ...]:
    hosts = situation.view.unseen_hosts
    if hosts:
        return (f"Scan again once {fold_hosts_briefly(hosts)} can be looked at: the ranks that were not seen may be there.",)
    ranks = set(named)
    sources = (("flight-recorder dumps", situation.view.recordings), ("stacks", situation.view.stacks))
    lacking = [what for what, seen in sources if ranks - seen.keys()]
    return (f"Bring the {' and the '.join(lacking)} of the ranks named here.",) if lacking else ()


def _actions(situation: Situation, candidates: Iterable[int]) -> Iterator[Action]:
    """Asks after hosts of which nothing was seen, else after ranks whose stacks were not taken."""
    hosts = situation.view.unseen_hosts
    for host in hosts[:MAX_ASKED]:
        yield Action(text=f"see whether {host} is up", command=situation.reach.ask_about(host), effect=None)
    out_of_sight = {None, *hosts} if hosts else set()
    unread = (rank for rank in sorted(candidates) if rank not in situation.view.stacks)
    for rank in islice((rank for rank in unread if situation.view.host(rank) not in out_of_sight), MAX_NAMED):
        yield take_stack(situation, rank)


def _oldest(situation: Situation, open_ends: list[Node]) -> Meeting | None:
    ends = set(open_ends)
    meetings = [meeting for key, meeting in situation.graph.meetings.items() if key in ends or ends.intersection(meeting.needs)]
    return min(meetings, key=lambda meeting: (situation.waiting_since_ns(meeting) or 0, meeting.key), default=None)
