"""How each layer that routes is, as `pardbg moe` tells it: field for field what its ``layers`` are in JSON. None: not known."""

from enum import Enum

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import Kind


class TrendFigure(str, Enum):
    """Which figure a trend is of."""

    LOAD = "load"
    """The busiest expert's load over the mean load."""
    DROPPED = "dropped"
    DEAD = "dead"
    EP_LOAD = "ep-load"
    """The busiest EP rank's load over the mean of the ranks."""
    GRADIENT = "gradient"


class ShownFigures(Noun, frozen=True, kw_only=True):
    """Of the newest steps together. The ratios of loads are 1 where all are alike; the others are shares (0-1)."""

    load_ratio_max: float
    mean_entropy_ratio: float
    dead_ratio: float
    drop_ratio: float | None
    ep_load_ratio_max: float | None
    router_grad_norm: float | None


class ShownIllness(Noun, frozen=True, kw_only=True):
    """What is ill: ``value`` and ``usual`` are those of ``figure`` now and before; ``until_step`` is None while it lasts.

    ``alarm_step`` is the one at which it was sure.
    """

    kind: Kind
    since_step: int
    alarm_step: int
    until_step: int | None
    value: float
    usual: float | None
    figure: str
    experts: tuple[int, ...]
    ep_ranks: tuple[int, ...]


class ExpertLoad(Noun, frozen=True, kw_only=True):
    """An expert with its share of the assignments (0-1)."""

    expert: int
    share: float


class Trend(Noun, frozen=True, kw_only=True):
    """The course of one figure: means of equal parts of the steps, None where nothing was counted."""

    figure: TrendFigure
    first_step: int
    last_step: int
    means: tuple[float | None, ...]


class LayerHealth(Noun, frozen=True, kw_only=True):
    """One layer. ``illnesses``: the gravest first; ``worst_experts``: those with most tokens.

    ``doubts``: why it cannot be called well though nothing is ill.
    """

    layer: int
    name: str | None
    steps: int
    first_step: int
    last_step: int
    experts: int
    top_k: int | None
    ep_size: int | None
    figures: ShownFigures
    illnesses: tuple[ShownIllness, ...]
    doubts: tuple[str, ...] = ()
    worst_experts: tuple[ExpertLoad, ...]
    trend: Trend
