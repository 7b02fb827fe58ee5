"""A rank raised, and what handles the exception has entered a collective of its own: a checkpoint on error, a last reduction.

By its recorder it issued something else than the others; what went first is the exception.
"""

import re
from collections.abc import Iterable

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, stack_line, wait_verb
from pardbg.watchdog.graph.departures import Departure
from pardbg.watchdog.graph.divergence import DivergenceFound
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, Kind
from pardbg.watchdog.model.report import Finding

_HANDLER = re.compile(r"(^|_)(on|handle|after|log)_?\w*(exception|error|failure)|excepthook", re.IGNORECASE)
_HANDLED = frozenset({Departure.EXCEPT, Departure.FINALLY})


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding for each group in which a rank diverged for that reason."""
    for found in situation.divergences:
        ranks = tuple(rank for rank in found.sides.minority if _is_handling(situation, rank))
        if ranks and ranks == found.sides.minority:
            yield _describe(situation, found, ranks)


def _is_handling(situation: Situation, rank: int) -> bool:
    """Its log has an exception of its own, and its stack is below what handles one."""
    traceback = situation.view.tracebacks.get(rank)
    if traceback is None or rank in situation.view.ended_ranks:
        return False
    names = (frame.bare_name for frame in situation.main_frames(rank) if not frame.filename.startswith("<"))
    return situation.departure(rank) in _HANDLED or any(map(_HANDLER.search, names))


def _describe(situation: Situation, found: DivergenceFound, ranks: tuple[int, ...]) -> Finding:
    first, view = ranks[0], situation.view
    victims = tuple(rank for rank in situation.waiting_ranks if rank not in ranks)
    ends = "; ".join(f"rank {rank} raised {view.tracebacks[rank].exception}" for rank in ranks)
    return Finding(
        kind=Kind.DEAD_RANK,
        cause=Cause.EXCEPTION,
        confidence=Confidence.SUPPORTED,
        culprits=tuple(situation.subject(rank, f"raised {view.tracebacks[rank].exception}") for rank in ranks),
        victims=victims,
        claim=(
            f"{ends}, and what handles it has entered another operation than the others: it has left what they are in; "
            f"{count_ranks(victims)} {wait_verb(victims)}"
        ),
        evidence=(
            view.line(CollectorName.RANK_LOG, first, view.tracebacks[first].exception),
            *(stack_line(situation, rank) for rank in ranks),
            view.line(
                CollectorName.FLIGHT_RECORDER,
                first,
                f"differs from the others at collective {found.sides.seq} ({found.mismatch.value})",
            ),
        ),
        advice=("Enter no collective while an exception is handled: the other ranks do not know of it.",),
    )
