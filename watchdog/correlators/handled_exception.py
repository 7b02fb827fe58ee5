"""A rank raised, and what handles the exception has entered a collective of its own: a checkpoint on error, a last reduction.

By its recorder, or its stack, it is in something else than the others; what went first is the exception. Where its stack lies
shows that: below a function whose name says it handles errors, if its log has the exception, or in an ``except`` clause of the
``try`` the others are still in. That is evidence against the rank itself, so no majority is needed.
"""

import re
from collections.abc import Iterable, Sequence

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, name_ranks, stack_line, wait_verb
from pardbg.watchdog.graph.departures import Departure
from pardbg.watchdog.graph.divergence import DivergenceFound
from pardbg.watchdog.model.evidence import StackFrame
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, Kind
from pardbg.watchdog.model.report import EvidenceLine, Finding

_HANDLER = re.compile(r"(^|_)(on|handle|after|log)_?\w*(exception|error|failure)|excepthook", re.IGNORECASE)
_HANDLED = frozenset({Departure.EXCEPT, Departure.FINALLY})


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding for each group in which a rank diverged for that reason."""
    for found in situation.divergences:
        ranks = _handling_side(situation, [members for _, members in found.sides.sides])
        if ranks:
            yield _describe(situation, ranks, _recorded_lines(situation, found, ranks[0]))
    if not situation.divergences:
        yield from (_describe(situation, ranks, ()) for ranks in handling_by_stacks(situation).values())


def handling_by_stacks(situation: Situation) -> dict[int, tuple[int, ...]]:
    """The ranks that handle an exception in an operation the others of the group are not in, by the group's index."""
    places: dict[int, list[tuple[int, ...]]] = {}
    for key, meeting in situation.graph.meetings.items():
        if key.is_gathering and meeting.waiting:
            places.setdefault(key.group, []).append(meeting.waiting)
    sides = {group: _handling_side(situation, here) for group, here in places.items()}
    return {group: ranks for group, ranks in sides.items() if ranks}


def _handling_side(situation: Situation, places: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The ranks that stand apart from the others and handle an exception there; none if some that stand with them do not."""
    handling = [tuple(rank for rank in ranks if _is_handling(situation, rank)) for ranks in places]
    apart = [ranks for ranks in handling if ranks]
    if len(apart) == len(places) or any(here and here != ranks for here, ranks in zip(handling, places, strict=True)):
        return ()
    return tuple(sorted(rank for ranks in apart for rank in ranks))


def _is_handling(situation: Situation, rank: int) -> bool:
    """Its stack is below what handles an exception, and its log has one of its own; or the source shows the clause."""
    view = situation.view
    if rank in view.ended_ranks:
        return False
    departure = situation.departure(rank)
    if rank not in view.tracebacks:  # then the end of a peer may have raised it: only where all live it is the rank's own
        return departure is Departure.EXCEPT and not view.ended_ranks and rank not in view.bereaved_ranks
    names = (frame.bare_name for frame in situation.main_frames(rank) if not frame.filename.startswith("<"))
    return departure in _HANDLED or any(map(_HANDLER.search, names))


def _handler_frame(situation: Situation, rank: int) -> StackFrame | None:
    """The frame that handles the exception: innermost of those in a clause, else of those whose name says so."""
    frames = [frame for frame in situation.main_frames(rank) if not frame.filename.startswith("<")]
    in_clause = (frame for frame in frames if frame.is_own and frame.source is not None and frame.source.handlers)
    named = (frame for frame in frames if _HANDLER.search(frame.bare_name))
    return next(in_clause, next(named, None))


def _raised(situation: Situation, rank: int) -> str:
    traceback = situation.view.tracebacks.get(rank)
    return f"raised {traceback.exception}" if traceback is not None else "caught an exception"


def _describe(situation: Situation, ranks: tuple[int, ...], recorded: tuple[EvidenceLine, ...]) -> Finding:
    victims = tuple(rank for rank in situation.waiting_ranks if rank not in ranks)
    ends = "; ".join(f"rank {rank} {_raised(situation, rank)}" for rank in ranks)
    left = "it has" if len(ranks) == 1 else f"{name_ranks(ranks)} have"
    return Finding(
        kind=Kind.DEAD_RANK,
        cause=Cause.EXCEPTION,
        confidence=Confidence.SUPPORTED,
        culprits=tuple(situation.subject(rank, _raised(situation, rank)) for rank in ranks),
        victims=victims,
        claim=(
            f"{ends}, and what handles it has entered another operation than the others: {left} left what they are in; "
            f"{count_ranks(victims)} {wait_verb(victims)}"
        ),
        evidence=(*(line for rank in ranks for line in _lines(situation, rank)), *recorded),
        advice=("Enter no collective while an exception is handled: the other ranks do not know of it.",),
    )


def _lines(situation: Situation, rank: int) -> Iterable[EvidenceLine]:
    traceback = situation.view.tracebacks.get(rank)
    if traceback is not None:
        yield situation.view.line(CollectorName.RANK_LOG, rank, traceback.exception)
    yield stack_line(situation, rank)
    frame = _handler_frame(situation, rank)
    if frame is not None:
        handlers = frame.source.handlers if frame.source is not None else ()
        clause = f", in `{handlers[-1].clause}`" if handlers else ""
        yield situation.view.line(CollectorName.STACKS, rank, f"{frame.short} handles an exception{clause}")


def _recorded_lines(situation: Situation, found: DivergenceFound, rank: int) -> tuple[EvidenceLine, ...]:
    told = f"differs from the others at collective {found.sides.seq} ({found.mismatch.value})"
    return (situation.view.line(CollectorName.FLIGHT_RECORDER, rank, told),)
