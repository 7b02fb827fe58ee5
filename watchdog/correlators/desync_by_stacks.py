"""Members of one group stand in different operations of it, seen by their stacks alone.

Without sequence numbers a place says who diverged only where nobody can have finished ahead of the others: collectives in
which every member needs every other. A rooted operation (broadcast) lets some go on while others still wait for a member that
skipped it, so a rank that waits in one may be innocent, unless it deals with nobody but the source.
"""

from collections.abc import Iterable, Sequence

from pardbg.watchdog.correlators.handled_exception import handling_by_stacks
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, name_group, name_ranks, since, stack_line, wait_verb
from pardbg.watchdog.graph.divergence import Sides
from pardbg.watchdog.graph.meetings import Meeting
from pardbg.watchdog.model.matching import Token
from pardbg.watchdog.model.names import Confidence, Kind, Mismatch
from pardbg.watchdog.model.operations import ROOTED_OPS
from pardbg.watchdog.model.report import Finding


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding per group in which nobody is missing and not all stand in the same operation."""
    by_group: dict[int, list[Meeting]] = {}
    for key, meeting in situation.graph.meetings.items():
        gathering = situation.gathering(key)
        if gathering is not None and gathering.has_members and gathering.is_described and gathering.op:
            by_group.setdefault(key.group, []).append(meeting)
    handled = handling_by_stacks(situation)  # `handled_exception` speaks of these
    for group, meetings in by_group.items():
        if group in handled:
            continue
        present = {rank for meeting in meetings for rank in meeting.waiting}
        others = [rank for rank in situation.groups.groups[group].ranks if rank not in present]
        if len(meetings) > 1 and not any(situation.standings[rank].can_be_root for rank in others):
            ordered = sorted(meetings, key=lambda meeting: (-len(meeting.waiting), meeting.waiting))
            yield _describe(situation, ordered, tuple(others))


def _describe(situation: Situation, meetings: Sequence[Meeting], silent: tuple[int, ...]) -> Finding:
    group = situation.groups.groups[meetings[0].key.group]
    tokens = [Token(op=_words(situation, meeting), dtypes=None, elements=None, where=None) for meeting in meetings]
    sides = Sides(0, tuple((token, meeting.waiting) for token, meeting in zip(tokens, meetings, strict=True)), silent)
    minority = sides.minority if all(_is_telling(situation, meeting) for meeting in meetings) else ()
    everybody = sorted({rank for meeting in meetings for rank in meeting.waiting})
    subjects = tuple(
        situation.subject(rank, f"stands in {_words(situation, meeting)}")
        for meeting in meetings
        for rank in meeting.waiting
        if rank in (minority or everybody)
    )
    victims = tuple(sorted(set(situation.waiting_ranks) - set(minority or everybody)))
    told = [
        f"{name_ranks(meeting.waiting)} {wait_verb(meeting.waiting)} in {_words(situation, meeting)}" for meeting in meetings
    ]
    besides = f"; {count_ranks(victims)} besides {wait_verb(victims)}" if victims else ""
    unclear = "" if minority else "; which side is wrong cannot be told from stacks"
    ops = {situation.collective_ref(meeting).op for meeting in meetings}
    return Finding(
        kind=Kind.DESYNC,
        confidence=Confidence.SUPPORTED if minority else Confidence.SUGGESTED,
        culprits=subjects if minority else (),
        candidates=() if minority else subjects,
        victims=victims,
        group=situation.group_ref(group),
        collective=situation.collective_ref(meetings[0]),
        mismatch=Mismatch.OP if len(ops) > 1 else Mismatch.ROOT,
        since_s=situation.waiting_s(meetings[0]),
        claim=(
            f"{', where '.join(reversed(told)) if len(told) == 2 else '; '.join(told)}, of the {name_group(group)}{unclear}"
            f"{besides}{since(situation, meetings[0])}"
        ),
        evidence=tuple(stack_line(situation, meeting.waiting[0]) for meeting in meetings),
        advice=("Look for a branch around these collectives that not every rank takes.",),
    )


def _words(situation: Situation, meeting: Meeting) -> str:
    """``broadcast at share_statistics (train.py:57)``."""
    collective = situation.collective_ref(meeting)
    source = f" from rank {collective.src}" if collective.src is not None else ""
    where = situation.own_frame(meeting.waiting[0])
    return f"{collective.op}{source}{f' at {where.short}' if where else ''}"


def _is_telling(situation: Situation, meeting: Meeting) -> bool:
    """Whether standing here shows that the rank itself, and no other, is at odds with the rest."""
    collective = situation.collective_ref(meeting)
    if collective.op not in ROOTED_OPS:
        return True
    group = situation.groups.groups[meeting.key.group]
    if collective.op != "broadcast" or collective.src not in group.ranks or situation.is_on_accelerator:
        return False
    return len(meeting.waiting) == 1 and _deals_with_source_only(group.ranks, collective.src, meeting.waiting[0])


def _deals_with_source_only(members: Sequence[int], source: int, rank: int) -> bool:
    """Whether this rank gets its data straight from the source and passes them to nobody, in gloo's binomial tree.

    There the parent of the member at a distance from the source is the one at that distance without its highest bit; and who
    passes data on waits until they are taken.
    """
    distance = (members.index(rank) - members.index(source)) % len(members)
    is_fed_by_source = distance > 0 and distance & (distance - 1) == 0
    return is_fed_by_source and distance + 2 * distance >= len(members)
