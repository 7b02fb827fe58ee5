"""What a report says of routing besides findings: that it is well, how much was counted, what does not add up, what is over."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pardbg.watchdog.correlators.routing import find_ailing, is_harm
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason, CollectorName, Kind
from pardbg.watchdog.model.routing import RoutingSeries
from pardbg.watchdog.routing.doubts import is_remark
from pardbg.watchdog.routing.illness import Illness

LEAST_STEPS = 50
"""Below it nothing can be told from a warm-up or from chance."""
MOST_NOTES = 8
_UNREAD = frozenset({AbsenceReason.UNREADABLE, AbsenceReason.DENIED, AbsenceReason.TIMED_OUT})


def routing_notes(situation: Situation) -> tuple[str, ...]:
    """For the reader of a report; the last one says how it stands. None where nothing was counted."""
    if not situation.view.routing:
        return ()
    notes = list(dict.fromkeys(_details(situation)))
    left = len(notes) - MOST_NOTES
    more = (f"and {left} more notes on routing",) if left > 0 else ()
    return (*notes[:MOST_NOTES], *more, *_summary(situation))


def why_unsure(situation: Situation) -> str:
    """Why nothing being ill does not mean that routing is well; empty if it does."""
    lost = next(find_lost(situation), "")
    if lost:
        return f"{_counted(situation)}: nothing that could be read is ill, but {lost}"
    steps = _count_steps(situation)
    if steps < LEAST_STEPS:
        return f"{_counted(situation)}: too few steps to tell, at least {LEAST_STEPS} are needed"
    is_doubtful = not all(map(is_remark, situation.routing_watch.doubts))
    return f"{_counted(situation)}: nothing is ill, but what was counted does not add up" if is_doubtful else ""


def find_lost(situation: Situation) -> Iterator[str]:
    """What was counted and cannot be used, where it is most of it or the newest; all counts of a rank, too."""
    counted = {item.rank for item in situation.view.evidence if isinstance(item.observation, RoutingSeries)}
    for item in situation.view.absences:
        absence = item.observation
        if item.source is not CollectorName.ROUTING or not isinstance(absence, Absence):
            continue
        if absence.reason is AbsenceReason.LOST:
            yield absence.detail
        elif absence.reason in _UNREAD and item.rank is not None and item.rank not in counted:
            yield f"of rank {item.rank} {absence.detail}"


def _details(situation: Situation) -> Iterator[str]:
    yield from (doubt.removesuffix(".") for doubt in situation.routing_watch.doubts)
    for illness in _merge_past(illness for illness in situation.routing_watch.past if not is_harm(illness)):
        yield _name_past(illness)


def _merge_past(past: Iterable[Illness]) -> list[Illness]:
    """Of one kind and layer, those that overlap or meet as one."""
    merged: dict[tuple[Kind, int], list[Illness]] = {}
    for illness in sorted(past, key=lambda found: found.since_step):
        known = merged.setdefault((illness.kind, illness.layer), [])
        if known and illness.since_step <= (known[-1].until_step or 0):
            known[-1] = replace(known[-1], until_step=max(known[-1].until_step or 0, illness.until_step or 0))
        else:
            known.append(illness)
    return sorted((one for found in merged.values() for one in found), key=lambda illness: (illness.since_step, illness.layer))


def _name_past(illness: Illness) -> str:
    return f"layer {illness.layer} had {illness.kind.value} from step {illness.since_step} to {illness.until_step}: it is over"


def _summary(situation: Situation) -> Iterator[str]:
    if find_ailing(situation):
        return
    unsure = why_unsure(situation)
    if unsure:
        yield unsure
    elif any(row.router_grad_norm is not None for row in situation.routing.rows):
        yield f"{_counted(situation)}: it is well"
    else:
        yield f"{_counted(situation)}: the load is well; whether routers learn, counts without router_grad_norm do not say"


def _counted(situation: Situation) -> str:
    layers = len({row.layer for row in situation.routing.rows})
    steps = _count_steps(situation)
    return f"routing of {layers} layer{'' if layers == 1 else 's'} over {steps} step{'' if steps == 1 else 's'}"


def _count_steps(situation: Situation) -> int:
    return len({row.step for row in situation.routing.rows})
