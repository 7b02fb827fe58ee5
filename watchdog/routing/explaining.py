"""Which illness brings which others along: one cause is told first, and what it explains is not told as a second fault."""

from collections.abc import Iterable

from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.routing.illness import Illness

BRINGS = {
    Kind.ROUTER_NO_GRADIENT: (Kind.ROUTER_COLLAPSE, Kind.DROP_SPIKE, Kind.DEAD_EXPERTS),
    Kind.ROUTER_COLLAPSE: (Kind.DROP_SPIKE, Kind.DEAD_EXPERTS),
    Kind.DEAD_EXPERTS: (),
    Kind.DROP_SPIKE: (),
    Kind.EP_IMBALANCE: (),
}
"""A hot EP rank that is raised during a collapse is out of all proportion to it: nothing explains it."""
ORDER = (Kind.ROUTER_COLLAPSE, Kind.ROUTER_NO_GRADIENT, Kind.DROP_SPIKE, Kind.DEAD_EXPERTS, Kind.EP_IMBALANCE)
"""Worst first."""
BEFORE_ROWS = 64
"""Steps by which a consequence may seem to begin before its cause: detectors date with different sharpness."""


def explains(cause: Illness, other: Illness) -> bool:
    """Whether ``other`` is a consequence of ``cause``: the same layer, and not begun well before it."""
    return (
        other.kind in BRINGS[cause.kind]
        and cause.layer == other.layer
        and cause.since_step <= other.since_step + BEFORE_ROWS
        and (cause.until_step is None or other.since_step < cause.until_step)
    )


def by_weight(illnesses: Iterable[Illness]) -> tuple[Illness, ...]:
    """Causes before consequences, worst kind first, then the earliest."""
    every = tuple(illnesses)

    def weight(illness: Illness) -> tuple[bool, int, int, int]:
        explained = any(explains(cause, illness) for cause in every)
        return explained, ORDER.index(illness.kind), illness.since_step, illness.layer

    return tuple(sorted(every, key=weight))
