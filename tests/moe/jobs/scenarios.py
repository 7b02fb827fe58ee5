"""What is made to happen in a training run, and for how long. All begin with the same healthy steps, warm-up included."""

from dataclasses import dataclass

from tests.moe.jobs.ep_transformer import EXPERT_COUNT

HEALTHY_STEPS = 140
"""Of every scenario; the next step is the first that is changed."""
POPULAR = 1.85


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A healthy run with one change.

    Attributes:
        steps: so many after the healthy ones.
        layer: the MoE layer that it is done to; None for a change that is done to none or all.
        is_unbalanced: no balancing loss any more, and in ``layer`` experts that are liked get liked more.
        skewed_steps: so many steps take a batch of the same few characters.
        capacity_factor: of ``layer``.
        is_cut_off: the router of ``layer`` gets no gradient.
        wanted_load: what a controller of the router's bias brings the load of each expert of ``layer`` to, mean 1.
    """

    steps: int
    layer: int | None = None
    is_unbalanced: bool = False
    skewed_steps: int = 0
    capacity_factor: float | None = None
    is_cut_off: bool = False
    wanted_load: tuple[float, ...] = ()


def _popular(*experts: int) -> tuple[float, ...]:
    """Some experts have nearly twice their share."""
    rest = (EXPERT_COUNT - POPULAR * len(experts)) / (EXPERT_COUNT - len(experts))
    return tuple(POPULAR if expert in experts else rest for expert in range(EXPERT_COUNT))


SCENARIOS = {
    "healthy": Scenario(steps=115),
    "collapse": Scenario(steps=115, layer=1, is_unbalanced=True),
    "skewed": Scenario(steps=30, skewed_steps=2),
    "capacity-cut": Scenario(steps=20, layer=2, capacity_factor=0.5),
    "frozen": Scenario(steps=20, layer=1, is_cut_off=True),
    "hot-rank": Scenario(steps=70, layer=2, wanted_load=_popular(8, 9, 10, 11)),  # all four on rank 2
    "spread": Scenario(steps=70, layer=2, wanted_load=_popular(2, 6, 10, 14)),  # one on each rank: well placed
}
