"""Closed cycles of the wait-for graph: who waits for whom in a circle, and what kind of circle it is.

* all waits are P2P: `p2p-deadlock`, and every rank of the cycle is to blame;
* some are P2P, and a peer that waits in a collective will never issue its half: `p2p-unmatched`;
* else operations were entered in opposite orders: `order-inversion`.
"""

from collections.abc import Iterable
from itertools import combinations

from pardbg.watchdog.correlators import group_mismatch
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, name_meeting, name_ranks, since, wait_verb, waiting_line
from pardbg.watchdog.graph.divergence import Sides
from pardbg.watchdog.graph.habit import keeps_habit
from pardbg.watchdog.graph.keys import MeetingKey
from pardbg.watchdog.graph.meetings import Meeting
from pardbg.watchdog.graph.waits import Node
from pardbg.watchdog.model.matching import Token
from pardbg.watchdog.model.names import Confidence, Kind
from pardbg.watchdog.model.report import Finding


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding per cycle."""
    for cycle in situation.graph.cycles:
        meetings = [situation.graph.meetings[node] for node in _ordered(cycle)]
        if any(_is_contradictory(situation, meeting) for meeting in meetings):
            continue  # `group_mismatch` speaks of it
        if any(_has_diverged(situation, meeting) for meeting in meetings):
            continue  # `desync` speaks of it
        if all(meeting.key.is_gathering for meeting in meetings) and len({meeting.key.group for meeting in meetings}) == 1:
            continue  # `desync_by_stacks` speaks of it, or `missing_participant`
        transfers = [meeting for meeting in meetings if meeting.key.is_p2p]
        if len(transfers) == len(meetings):
            yield _p2p_deadlock(situation, cycle, meetings)
        elif unmatched := [meeting for meeting in transfers if _is_unmatched(situation, meeting)]:
            yield _p2p_unmatched(situation, cycle, unmatched)
        else:
            yield _order_inversion(situation, cycle, meetings)


def _ordered(cycle: frozenset[Node]) -> list[MeetingKey]:
    keys = [node for node in cycle if isinstance(node, MeetingKey)]
    return sorted(keys, key=lambda key: (key.group, key.seq or 0, key.src, key.dst))


def _is_contradictory(situation: Situation, meeting: Meeting) -> bool:
    key = meeting.key
    return key.group >= 0 and group_mismatch.is_contradiction(situation, situation.groups.groups[key.group])


def _has_diverged(situation: Situation, meeting: Meeting) -> bool:
    """Whether its members issued different operations here or before: that is no matter of the order of groups.

    Where groups are entered in opposite orders, each for itself is in order.
    """
    group, seq, *_ = meeting.key
    return seq is not None and any(found.group.index == group and found.sides.seq <= seq for found in situation.divergences)


def _members(cycle: frozenset[Node]) -> tuple[int, ...]:
    return tuple(sorted(node for node in cycle if isinstance(node, int)))


def _is_unmatched(situation: Situation, transfer: Meeting) -> bool:
    """Whether the peer has not issued its half, and it is not rather the waiting end that left its own order."""
    if not transfer.absent:
        return False  # the peer's half is there, behind what the peer stands at
    strays = any(keeps_habit(situation.graph.room, rank) is False for rank in transfer.waiting)
    return not strays or any(keeps_habit(situation.graph.room, rank) is False for rank in transfer.absent)


def _p2p_deadlock(situation: Situation, cycle: frozenset[Node], meetings: list[Meeting]) -> Finding:
    ranks = _members(cycle)
    victims = situation.graph.victims(cycle)
    circle = "; ".join(f"rank {meeting.waiting[0]} waits in {name_meeting(situation, meeting)}" for meeting in meetings[:4])
    more = f"; and {len(meetings) - 4} more" if len(meetings) > 4 else ""
    return Finding(
        kind=Kind.P2P_DEADLOCK,
        confidence=Confidence.SUPPORTED,
        culprits=tuple(situation.subject(rank, _stands(situation, rank)) for rank in ranks),
        victims=victims,
        group=situation.meeting_group(meetings[0].key),
        collective=situation.collective_ref(meetings[0]),
        since_s=situation.waiting_s(meetings[0]),
        claim=(
            f"sends and receives of {name_ranks(ranks)} wait for each other in a circle: {circle}{more}; "
            f"{count_ranks(victims)} besides {wait_verb(victims)}{since(situation, meetings[0])}"
        ),
        evidence=tuple(waiting_line(situation, meeting) for meeting in meetings),
        advice=("Let one side receive first, or issue both halves together with batch_isend_irecv.",),
    )


def _p2p_unmatched(situation: Situation, cycle: frozenset[Node], transfers: list[Meeting]) -> Finding:
    absent = sorted({rank for meeting in transfers for rank in meeting.absent})
    elsewhere = [rank for rank in absent if not all(key.is_p2p for key in situation.graph.room.keys(rank))]
    peers = elsewhere or absent  # a peer that itself waits in a transfer is a link of the chain
    victims = situation.graph.victims([*cycle])
    waiting = sorted({*_members(cycle), *victims} - set(peers))
    first = transfers[0]
    return Finding(
        kind=Kind.P2P_UNMATCHED,
        confidence=Confidence.SUPPORTED,
        culprits=tuple(
            situation.subject(rank, f"{_stands(situation, rank)} instead of its half of the transfer") for rank in peers
        ),
        victims=tuple(waiting),
        group=situation.meeting_group(first.key),
        collective=situation.collective_ref(first),
        since_s=situation.waiting_s(first),
        claim=(
            f"{name_ranks(peers)} {wait_verb(peers)} elsewhere ({_stands(situation, peers[0])}) and will never issue "
            f"{'its' if len(peers) == 1 else 'their'} half of {name_meeting(situation, first)}; "
            f"{count_ranks(waiting)} {wait_verb(waiting)}{since(situation, first)}"
        ),
        evidence=tuple(waiting_line(situation, situation.graph.meetings[node]) for node in _ordered(cycle)),
        advice=("Look for the branch in which this rank skips its send or receive, or issues it after a collective.",),
    )


def _order_inversion(situation: Situation, cycle: frozenset[Node], meetings: list[Meeting]) -> Finding:
    """The ranks that belong to both groups disagree which operation comes first; only they have a vote."""
    sides = [sides for pair in combinations(meetings, 2) if len((sides := _votes(situation, *pair)).sides) > 1]
    minority = tuple(sorted({rank for side in sides for rank in side.minority}))
    voters = tuple(sorted({rank for side in sides for _, ranks in side.sides for rank in ranks})) or _members(cycle)
    accused = minority or voters
    subjects = tuple(situation.subject(rank, f"{_stands(situation, rank)} first") for rank in accused)
    victims = {*situation.graph.victims(cycle), *_members(cycle)} - set(accused)
    told = "; ".join(f"{name_ranks(meeting.waiting)} entered {name_meeting(situation, meeting)} first" for meeting in meetings)
    return Finding(
        kind=Kind.ORDER_INVERSION,
        confidence=Confidence.SUPPORTED,
        culprits=subjects if minority else (),
        candidates=() if minority else subjects,
        victims=tuple(sorted(victims)),
        group=situation.meeting_group(meetings[0].key),
        collective=situation.collective_ref(meetings[0]),
        since_s=situation.waiting_s(meetings[0]),
        claim=(
            f"groups were entered in opposite orders: {told}; each waits for the other, "
            f"{count_ranks(situation.waiting_ranks)} in all{since(situation, meetings[0])}"
        ),
        evidence=tuple(waiting_line(situation, meeting) for meeting in meetings),
        advice=("Issue the collectives of different groups in the same order on every rank.",),
    )


def _votes(situation: Situation, one: Meeting, other: Meeting) -> Sides:
    """Who of the ranks in both groups stands at the one operation, and who at the other."""
    both = _takers(situation, one) & _takers(situation, other)
    stands = [(meeting, tuple(rank for rank in meeting.waiting if rank in both)) for meeting in (one, other)]
    sides = [(_token(situation, meeting), ranks) for meeting, ranks in stands if ranks]
    vague = {*one.vague, *other.vague}
    unseen = tuple(sorted(rank for rank in both if not situation.is_seen(rank) or rank in vague))
    return Sides(0, tuple(sorted(sides, key=lambda side: (-len(side[1]), side[1]))), unseen)


def _takers(situation: Situation, meeting: Meeting) -> set[int]:
    """Those who have to take part."""
    key = meeting.key
    return {key.src, key.dst} if key.is_p2p else set(situation.groups.groups[key.group].ranks)


def _token(situation: Situation, meeting: Meeting) -> Token:
    return Token(op=name_meeting(situation, meeting), dtypes=None, elements=None, where=None)


def _stands(situation: Situation, rank: int) -> str:
    keys = situation.graph.edges.get(rank, ())
    meetings = [situation.graph.meetings[key] for key in keys if isinstance(key, MeetingKey)]
    return f"waits in {name_meeting(situation, meetings[0])}" if meetings else "waits"
