"""One rank's experts are sent far more tokens than the others', as the recorders alone show: no counts, no probe.

Says nothing of a job that hangs, where it would only distract, nor where counts tell the same by layer.
"""

from collections.abc import Iterable, Iterator

from pardbg.watchdog.correlators.routing import find_ailing
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import name_group, name_ranks
from pardbg.watchdog.graph.ep_load import EpLoad, find_ep_loads
from pardbg.watchdog.model.names import CollectorName, Confidence, Kind
from pardbg.watchdog.model.report import EvidenceLine, Finding

SURE_DISPATCHES = 200
MOST_LINES = 4


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding a group."""
    if situation.is_stuck:
        return
    if situation.view.routing and any(illness.kind is Kind.EP_IMBALANCE for illness in find_ailing(situation)):
        return
    for load in find_ep_loads(situation.progress):
        if load.hot:
            yield _describe(situation, load)


def _describe(situation: Situation, load: EpLoad) -> Finding:
    hottest = load.hot[0]
    positions = {rank: position for position, rank in enumerate(load.group.ranks)}
    others = f" ({name_ranks(load.hot)} are hot)" if len(load.hot) > 1 else ""
    return Finding(
        kind=Kind.EP_IMBALANCE,
        confidence=Confidence.SUPPORTED if load.dispatches >= SURE_DISPATCHES else Confidence.SUGGESTED,
        culprits=tuple(
            situation.subject(
                rank, f"EP rank {positions[rank]} takes {load.ratios[rank]:.1f} times the mean rows of {name_group(load.group)}"
            )
            for rank in load.hot
        ),
        group=situation.group_ref(load.group),
        claim=(
            f"the experts of rank {hottest} are sent {load.ratios[hottest]:.1f} times as many tokens as the mean of "
            f"the {name_group(load.group)}, in nearly each of the last {load.dispatches} dispatches{others}"
        ),
        evidence=tuple(_lines(situation, load)),
        advice=(
            "Log routing counts, or start with `pardbg run`, to see which layers and experts it is: pardbg moe shows them.",
            "Place the experts anew, so that busy ones do not share an EP rank, or balance by rank (a device-level loss).",
        ),
    )


def _lines(situation: Situation, load: EpLoad) -> Iterator[EvidenceLine]:
    """The hottest rank and the coldest."""
    coldest = min(load.ratios, key=lambda rank: (load.ratios[rank], rank))
    for rank in (*load.hot[: MOST_LINES - 1], coldest):
        text = (
            f"rank {rank} took {load.ratios[rank]:.2f} times the mean rows in {load.dispatches} uneven all_to_alls "
            f"between {load.first_seq} and {load.last_seq}, to which every rank gave the same"
        )
        yield situation.view.line(CollectorName.FLIGHT_RECORDER, rank, text)
