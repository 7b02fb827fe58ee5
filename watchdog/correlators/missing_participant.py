"""A live rank has not entered what others of its group wait in: the roots of the wait-for graph.

Where that rank is busy on the host and moves, nobody is to blame: a slow phase.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence

from pardbg.watchdog.correlators.commands import action_on, fill, take_stack
from pardbg.watchdog.correlators.dead_rank import has_not_started, was_ended_by_others
from pardbg.watchdog.correlators.situation import Situation, before_first_operation, is_setting_up
from pardbg.watchdog.correlators.wording import (
    absent_line,
    child_words,
    count_ranks,
    name_meeting,
    name_ranks,
    process_lines,
    since,
    stack_line,
    wait_verb,
    waiting_line,
)
from pardbg.watchdog.graph.meetings import Meeting
from pardbg.watchdog.graph.standing import Stance
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, Kind
from pardbg.watchdog.model.process import STOPPED_STATES
from pardbg.watchdog.model.report import Action, EvidenceLine, Finding

INIT_CAUSES = frozenset({Cause.STORE_WAIT})
MAX_ACTIONS = 8
LONGER_S = 2.0  # by which a rank must have stood still before the others for it to be worth a word


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding per set of roots that are absent from the same operation, for the same cause."""
    for roots, meetings in _clusters(situation):
        for part, missed in _by_cause(situation, roots, meetings):
            yield _describe(situation, part, min(missed, key=lambda meeting: _age(situation, meeting)))


def _clusters(situation: Situation) -> list[tuple[tuple[int, ...], tuple[Meeting, ...]]]:
    """Roots that share a meeting belong together; independent ones are separate faults."""
    clusters: list[tuple[set[int], list[Meeting]]] = []
    for root in situation.graph.roots:
        meetings = situation.graph.missed_by(root)
        if situation.is_unwound(root):
            continue  # `unwound` speaks of it
        if root in situation.device_blames:
            continue  # `device_stuck` speaks of it
        is_alive = situation.stance(root) is not Stance.ENDED
        if not (is_alive or _lived_while_others_waited(situation, root) or has_not_started(situation, root)):
            continue  # `dead_rank` speaks of it
        sharing = [cluster for cluster in clusters if any(meeting in cluster[1] for meeting in meetings)]
        ranks = {root}.union(*(cluster[0] for cluster in sharing))
        known = [meeting for cluster in sharing for meeting in cluster[1]]
        clusters = [cluster for cluster in clusters if cluster not in sharing]
        clusters.append((ranks, known + [meeting for meeting in meetings if meeting not in known]))
    return [(tuple(sorted(ranks)), tuple(meetings)) for ranks, meetings in clusters]


def _by_cause(
    situation: Situation, roots: tuple[int, ...], meetings: tuple[Meeting, ...]
) -> Iterator[tuple[tuple[int, ...], Sequence[Meeting]]]:
    """Roots that different things hold up are separate faults, though the same ranks wait for them.

    Who moves is no fault beside one who stands still, of candidates only one is missing, and at the start all may be late for
    one reason: these stay together.
    """
    known, is_certain = _accused(situation, roots)
    causes: dict[Cause | None, list[int]] = {}
    for root in known:
        causes.setdefault(_cause(situation, root), []).append(root)
    is_one = not is_certain or len(causes) == 1 or any(situation.host_motion(root) for root in known)
    if is_one or any(_is_start(situation, known, meeting) for meeting in meetings):
        yield roots, meetings
        return
    for part in map(tuple, causes.values()):
        yield part, _own_meetings(part, known, meetings)


def _own_meetings(part: tuple[int, ...], roots: tuple[int, ...], meetings: tuple[Meeting, ...]) -> list[Meeting]:
    """What only these of the roots are missing from, if there is anything."""
    missed = [meeting for meeting in meetings if not {*meeting.absent}.isdisjoint(part)]
    others = {*roots} - {*part}
    return [meeting for meeting in missed if others.isdisjoint(meeting.absent)] or missed


def _lived_while_others_waited(situation: Situation, root: int) -> bool:
    """On gloo that cannot be told: errors retire operations, so a rank that waited looks idle at its end."""
    if root not in situation.view.recordings or not situation.is_on_device(root):
        return False
    return root not in situation.view.bereaved_ranks and was_ended_by_others(situation, root)


def _age(situation: Situation, meeting: Meeting) -> tuple[bool, bool, int, float, int]:
    """Orders meetings: recorded ones first, known members first, most roots absent first, then the oldest."""
    age = situation.waiting_since_ns(meeting) or -(situation.waiting_s(meeting) or 0.0)
    gathering = situation.gathering(meeting.key)
    is_vague = gathering is not None and not (gathering.has_members and gathering.op)
    return (gathering is not None, is_vague, -len(meeting.absent), age, meeting.key.group)


def _describe(situation: Situation, roots: tuple[int, ...], meeting: Meeting) -> Finding:
    """Of several roots those that stand still are to blame; where all of them get on with it, it is a slow phase."""
    roots, is_certain = _accused(situation, roots)
    moving = tuple(root for root in roots if situation.host_motion(root))
    still = tuple(root for root in roots if root not in moving)
    named = still or moving
    subjects = tuple(situation.subject(root, _why(situation, root, meeting)) for root in still)
    victims = situation.graph.victims(roots)
    positions = [situation.standings[root].position for root in named]
    rules = [position.rule for position in positions if position and position.rule]
    causes = {_cause(situation, root) for root in named}
    cause = causes.pop() if len(causes) == 1 else None
    is_init = _is_start(situation, roots, meeting)
    if is_init and cause not in INIT_CAUSES:
        cause = Cause.NOT_STARTED if set(named) <= situation.view.ended_ranks else None
    return Finding(
        kind=Kind.SLOW_PHASE if not still else Kind.INIT_STUCK if is_init else Kind.MISSING_PARTICIPANT,
        cause=cause,
        confidence=_confidence(situation, named, meeting) if is_certain else Confidence.SUGGESTED,
        culprits=subjects if is_certain else (),
        candidates=() if is_certain else subjects,
        waiting_for=tuple(situation.subject(root, situation.host_motion(root)) for root in moving),
        victims=victims,
        group=situation.meeting_group(meeting.key),
        collective=situation.collective_ref(meeting),
        since_s=_since_s(situation, named, meeting),
        claim=_claim(situation, named, victims, meeting, is_certain=is_certain),
        evidence=_evidence(situation, named, meeting),
        advice=tuple(dict.fromkeys(rule.advice for rule in rules if not rule.command)),
        actions=_actions(situation, named),
    )


def _accused(situation: Situation, roots: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
    """Who of the roots is missing, and whether that is certain.

    Where the members of a group are not known, every rank on the host may be the one that is missing from it, and most are busy
    with their own. One that is known to be missing explains the rest; else the only one that stands still does.
    """
    known = tuple(root for root in roots if any(map(situation.has_members, situation.graph.missed_by(root))))
    if known:
        return known, True
    still = tuple(root for root in roots if situation.standings[root].is_still)
    meetings = [meeting for root in roots for meeting in situation.graph.missed_by(root)]
    return still or roots, len(still or roots) == 1 and not all(map(situation.may_be_complete, meetings))


def _is_start(situation: Situation, roots: tuple[int, ...], meeting: Meeting) -> bool:
    """Whether this is before a rank's first completed operation: by the recorders, or since the job itself is being set up."""
    return is_setting_up(situation, meeting) or before_first_operation(situation, (*roots, *meeting.entered))


def _cause(situation: Situation, root: int) -> Cause | None:
    process, cause = situation.view.processes.get(root), situation.host_cause(root)
    if process is not None and process.state in STOPPED_STATES:
        return Cause.DEBUGGER if process.state == "t" else Cause.STOPPED
    if cause not in {Cause.STOPPED, Cause.DEBUGGER} and situation.departure(root) is not None:
        return Cause.LEFT_LOOP
    return cause


def _confidence(situation: Situation, roots: tuple[int, ...], meeting: Meeting) -> Confidence:
    if meeting.unknown:
        return Confidence.SUGGESTED
    is_still = all(situation.standings[root].is_still for root in roots)
    return Confidence.ESTABLISHED if is_still else Confidence.SUPPORTED


def _since_s(situation: Situation, roots: tuple[int, ...], meeting: Meeting) -> float | None:
    """How long the roots have been where they are: as long as the others wait, or as they themselves have not run."""
    known = [situation.waiting_s(meeting), *(situation.still_s(root) for root in roots)]
    return max((seconds for seconds in known if seconds is not None), default=None)


def _why(situation: Situation, root: int, meeting: Meeting) -> str:
    return f"has not entered {name_meeting(situation, meeting)}{_doing(situation, root, meeting, '; ')}"


def _doing(situation: Situation, root: int, meeting: Meeting, before: str) -> str:
    """``; it has left the training loop and is sleeping, at finish (train.py:60), for 312 s``."""
    position = situation.standings[root].position
    if position is None:
        return ""
    left = "has left the training loop and is " if _cause(situation, root) is Cause.LEFT_LOOP else "is "
    own = situation.own_frame(root)
    is_told = own is None or position.frame is None or own == position.frame
    caller = "" if is_told or own is None else f", from {own.short}"
    beat = situation.view.heartbeats.get(root)
    is_told_by_phase = situation.host_cause(root) is not position.cause
    still_s, waited_s = situation.still_s(root), situation.waiting_s(meeting)
    is_longer = still_s is not None and still_s > (waited_s or 0.0) + LONGER_S
    since_then = f", for {still_s:.0f} s" if is_longer else ""
    phase = f", in phase {beat.phase}" if is_told_by_phase and beat is not None else ""
    motion = situation.host_motion(root)
    doing = f"{before}it {left}{position.words}{caller}{phase}{since_then}{child_words(situation, root)}"
    return f"{doing}; {motion}" if motion else doing


def _claim(
    situation: Situation, roots: tuple[int, ...], victims: tuple[int, ...], meeting: Meeting, *, is_certain: bool
) -> str:
    have = "has" if len(roots) == 1 else "have"
    if not is_certain:
        return (
            f"one of {name_ranks(roots)} has not joined {name_meeting(situation, meeting)}, whose members are not known; "
            f"{count_ranks(victims)} {wait_verb(victims)}{since(situation, meeting)}"
        )
    doing = _doing(situation, roots[0], meeting, "; ")
    return (
        f"{name_ranks(roots)} {have} not joined {name_meeting(situation, meeting)}"
        f"{doing if len(roots) == 1 else doing.replace('; it', f'; rank {roots[0]}', 1)}; "
        f"{count_ranks(victims)} {wait_verb(victims)}{since(situation, meeting)}"
    )


def _evidence(situation: Situation, roots: tuple[int, ...], meeting: Meeting) -> tuple[EvidenceLine, ...]:
    lines = [waiting_line(situation, meeting)]
    for root in roots:
        lines.append(absent_line(situation, meeting, root))
        if situation.standings[root].position is not None and root in situation.view.recordings:
            lines.append(stack_line(situation, root))
        lines.extend(process_lines(situation, root))
        failure = situation.own_failures.get(root)
        if failure is not None:
            lines.append(situation.view.line(CollectorName.RANK_LOG, root, failure.text))
    return tuple(lines)


def _actions(situation: Situation, roots: tuple[int, ...]) -> tuple[Action, ...]:
    actions = tuple(action for root in roots if (action := _action(situation, root)) is not None)
    left = len(actions) - MAX_ACTIONS
    more = (Action(text=f"the same of {left} more ranks", command=None, effect=None),) if left > 0 else ()
    return (*actions[:MAX_ACTIONS], *more)


def _action(situation: Situation, root: int) -> Action | None:
    position, process = situation.standings[root].position, situation.view.processes.get(root)
    has_ended = root in situation.view.ended_ranks
    if position is None:
        return None if has_ended else take_stack(situation, root)
    if position.rule is None or not position.rule.command:
        return None
    path = _file_in_hand(situation, root)
    pid = process.pid if process is not None and not has_ended else None
    command = fill(position.rule.command, pid, shlex.quote(path) if path else "")
    return action_on(situation, situation.view.host(root), position.rule.advice, command)


def _file_in_hand(situation: Situation, root: int) -> str:
    """The path of the file that a rank's system call is about, if it is about one."""
    looks = situation.view.looks.get(root)
    blocked_on = looks[-1].blocked_on if looks else None
    return blocked_on.rsplit(" (", 1)[0] if blocked_on and blocked_on.startswith("/") else ""
