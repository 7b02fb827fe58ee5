"""A live rank has not entered what others of its group wait in: the roots of the wait-for graph."""

from collections.abc import Iterable

from pardbg.watchdog.correlators.dead_rank import was_ended_by_others
from pardbg.watchdog.correlators.situation import Situation, before_first_operation
from pardbg.watchdog.correlators.wording import (
    absent_line,
    count_ranks,
    name_meeting,
    name_ranks,
    since,
    stack_line,
    wait_verb,
    waiting_line,
)
from pardbg.watchdog.graph.meetings import Meeting
from pardbg.watchdog.graph.standing import Stance
from pardbg.watchdog.model.names import Cause, Confidence, Kind
from pardbg.watchdog.model.report import Action, EvidenceLine, Finding

INIT_CAUSES = frozenset({Cause.STORE_WAIT})
STOPPED_STATES = frozenset({"T", "t"})  # as in /proc/PID/stat: stopped by a signal, or by a tracer


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding per set of roots that are absent from the same operation."""
    for roots, meetings in _clusters(situation):
        yield _describe(situation, roots, min(meetings, key=lambda meeting: _age(situation, meeting)))


def _clusters(situation: Situation) -> list[tuple[tuple[int, ...], tuple[Meeting, ...]]]:
    """Roots that share a meeting belong together; independent ones are separate faults."""
    clusters: list[tuple[set[int], list[Meeting]]] = []
    for root in situation.graph.roots:
        if situation.stance(root) is Stance.ENDED and not _lived_while_others_waited(situation, root):
            continue  # `dead_rank` speaks of it
        meetings = situation.graph.missed_by(root)
        sharing = [cluster for cluster in clusters if any(meeting in cluster[1] for meeting in meetings)]
        ranks = {root}.union(*(cluster[0] for cluster in sharing))
        known = [meeting for cluster in sharing for meeting in cluster[1]]
        clusters = [cluster for cluster in clusters if cluster not in sharing]
        clusters.append((ranks, known + [meeting for meeting in meetings if meeting not in known]))
    return [(tuple(sorted(ranks)), tuple(meetings)) for ranks, meetings in clusters]


def _lived_while_others_waited(situation: Situation, root: int) -> bool:
    """On gloo that cannot be told: errors retire operations, so a rank that waited looks idle at its end."""
    if root not in situation.view.recordings or not situation.is_on_device(root):
        return False
    return root not in situation.view.bereaved_ranks and was_ended_by_others(situation, root)


def _age(situation: Situation, meeting: Meeting) -> tuple[int, int, int]:
    """Orders meetings: most roots absent first, then the oldest."""
    return (-len(meeting.absent), situation.waiting_since_ns(meeting) or 0, meeting.key.group)


def _describe(situation: Situation, roots: tuple[int, ...], meeting: Meeting) -> Finding:
    victims = situation.graph.victims(roots)
    positions = [situation.standings[root].position for root in roots]
    causes = {_cause(situation, root) for root in roots}
    cause = causes.pop() if len(causes) == 1 else None
    is_init = before_first_operation(situation, (*roots, *meeting.entered))
    if is_init and cause not in INIT_CAUSES:
        cause = None
    return Finding(
        kind=Kind.INIT_STUCK if is_init else Kind.MISSING_PARTICIPANT,
        cause=cause,
        confidence=_confidence(situation, roots, meeting),
        culprits=tuple(situation.subject(root, _why(situation, root, meeting)) for root in roots),
        victims=victims,
        group=situation.meeting_group(meeting.key),
        collective=situation.collective_ref(meeting),
        since_s=situation.waiting_s(meeting),
        claim=_claim(situation, roots, victims, meeting),
        evidence=_evidence(situation, roots, meeting),
        advice=tuple(dict.fromkeys(position.rule.advice for position in positions if position and position.rule)),
        actions=_actions(situation, roots),
    )


def _cause(situation: Situation, root: int) -> Cause | None:
    process, position = situation.view.processes.get(root), situation.standings[root].position
    if process is not None and process.state in STOPPED_STATES:
        return Cause.STOPPED
    return position.cause if position else None


def _confidence(situation: Situation, roots: tuple[int, ...], meeting: Meeting) -> Confidence:
    if meeting.unknown:
        return Confidence.SUGGESTED
    is_still = all(situation.standings[root].is_still for root in roots)
    return Confidence.ESTABLISHED if is_still else Confidence.SUPPORTED


def _why(situation: Situation, root: int, meeting: Meeting) -> str:
    position = situation.standings[root].position
    absent = f"has not entered {name_meeting(situation, meeting)}"
    return f"{absent}; {position.words}" if position else absent


def _claim(situation: Situation, roots: tuple[int, ...], victims: tuple[int, ...], meeting: Meeting) -> str:
    position = situation.standings[roots[0]].position
    doing = f"; rank {roots[0]} is {position.words}" if position else ""
    have = "has" if len(roots) == 1 else "have"
    return (
        f"{name_ranks(roots)} {have} not joined {name_meeting(situation, meeting)}{doing}; "
        f"{count_ranks(victims)} {wait_verb(victims)}{since(situation, meeting)}"
    )


def _evidence(situation: Situation, roots: tuple[int, ...], meeting: Meeting) -> tuple[EvidenceLine, ...]:
    lines = [waiting_line(situation, meeting)]
    for root in roots:
        lines.append(absent_line(situation, meeting, root))
        if situation.standings[root].position is not None and root in situation.view.recordings:
            lines.append(stack_line(situation, root))
    return tuple(lines)


def _actions(situation: Situation, roots: tuple[int, ...]) -> tuple[Action, ...]:
    actions = []
    for root in roots:
        position, process = situation.standings[root].position, situation.view.processes.get(root)
        pid = str(process.pid) if process and process.pid else "PID"
        host = situation.view.host(root)
        if position is None:
            text = f"look at what rank {root} does" + (f" (on {host})" if host else "")
            actions.append(Action(text=text, command=f"py-spy dump --pid {pid}", effect="stops the process for about 0.1 s"))
        elif position.rule and position.rule.command:
            actions.append(Action(text=position.rule.advice, command=position.rule.command.replace("PID", pid), effect=None))
    return tuple(actions)
