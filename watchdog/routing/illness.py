"""What is ill in how a layer routes: the noun that detectors give, and a report or an alert words."""

from dataclasses import dataclass

from pardbg.watchdog.model.names import Kind


@dataclass(frozen=True, kw_only=True)
class Illness:
    """One illness of one layer.

    Attributes:
        kind: `Kind.ROUTER_COLLAPSE`, `DROP_SPIKE`, `DEAD_EXPERTS`, `EP_IMBALANCE` or `ROUTER_NO_GRADIENT`.
        since_step: the first step that shows it; ``alarm_step`` the one at which it was sure; ``until_step`` the first that was
            well again, None while it lasts.
        value: the figure that tells it, in the unit of ``figure``; ``usual`` the same before, None where there was no before.
        figure: what is measured: e.g. ``drop ratio``, ``largest load / mean load``.
        experts: who takes or lacks the tokens, most concerned first, at most 8.
        ep_ranks: EP ranks that are hot.
    """

    kind: Kind
    layer: int
    since_step: int
    alarm_step: int
    until_step: int | None = None
    value: float
    usual: float | None = None
    figure: str
    experts: tuple[int, ...] = ()
    ep_ranks: tuple[int, ...] = ()
