"""All waiting ends at ranks inside another communication library (DeepEP, NVSHMEM, MPI, UCX, Ray, RPC): they wait there, too.

Whom they wait for that library alone knows, so that nobody is named; and where anybody is elsewhere, idle or was not seen, it
may be that one, and `unexplained` says so.
"""

from collections.abc import Iterable

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import (
    count_ranks,
    name_meeting,
    name_ranks,
    since,
    stack_line,
    wait_verb,
    waiting_line,
)
from pardbg.watchdog.graph.standing import Stance, Standing
from pardbg.watchdog.model.names import Cause, Confidence, Kind
from pardbg.watchdog.model.report import Finding

_MOST_LINES = 4


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding."""
    graph = situation.graph
    ends = [next(iter(sink)) for sink in graph.sinks if len(sink) == 1]
    ranks = sorted(end for end in ends if isinstance(end, int))
    if not ranks or len(ranks) < len(graph.sinks) or situation.divergences or situation.device_blames:
        return
    inside = [rank for rank, standing in situation.standings.items() if _is_inside(standing)]
    others = situation.standings.keys() - set(inside)
    if set(ranks) <= set(inside) and all(situation.stance(rank) is Stance.WAITING for rank in others):
        yield _describe(situation, ranks, inside)


def _is_inside(standing: Standing) -> bool:
    is_waiting = standing.stance is Stance.HIDDEN  # with an operation outstanding it is that which it is in
    return is_waiting and standing.is_foreign


def _describe(situation: Situation, ranks: list[int], inside: list[int]) -> Finding:
    missed = [meeting for rank in ranks for meeting in situation.graph.missed_by(rank)]
    meeting = min(missed, key=lambda meeting: (situation.waiting_since_ns(meeting) or 0, meeting.key), default=None)
    victims = situation.graph.victims(ranks)
    is_still = all(situation.standings[rank].is_still for rank in ranks)
    where, how_long = (f" in {name_meeting(situation, meeting)}", since(situation, meeting)) if meeting else ("", "")
    verbs = "stands and waits" if len(ranks) == 1 else "stand and wait"
    return Finding(
        kind=Kind.COMM_STUCK,
        cause=Cause.FOREIGN_COMM,
        confidence=Confidence.SUPPORTED if is_still else Confidence.SUGGESTED,
        victims=tuple(sorted({*victims, *inside})),
        group=situation.meeting_group(meeting.key) if meeting else None,
        collective=situation.collective_ref(meeting) if meeting else None,
        since_s=situation.waiting_s(meeting) if meeting else None,
        claim=(
            f"{count_ranks(victims)} {wait_verb(victims)}{where} for {name_ranks(ranks)}, which {verbs} inside another "
            f"communication library: every rank waits in one or the other{how_long}"
        ),
        evidence=(
            *(stack_line(situation, rank) for rank in ranks[:_MOST_LINES]),
            *((waiting_line(situation, meeting),) if meeting else ()),
        ),
        advice=("Do not enter a collective of that library while another rank is in one of torch.distributed: order the two.",),
    )
