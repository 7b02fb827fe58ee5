"""All that must hold, in the order in which it is told. A new rule is a function and a line here."""

from collections.abc import Callable, Iterator

from pardbg.watchdog.layout.grid_rules import (
    check_expert_grid,
    check_order,
    check_pipeline_groups,
    check_replicas,
    check_world,
)
from pardbg.watchdog.layout.model_rules import (
    check_batch,
    check_experts,
    check_heads,
    check_interleaving,
    check_layers,
    check_zero,
)
from pardbg.watchdog.layout.plan import Plan
from pardbg.watchdog.model.layout_report import Violation

RULES: tuple[Callable[[Plan], Iterator[Violation]], ...] = (
    check_world,
    check_replicas,
    check_order,
    check_expert_grid,
    check_pipeline_groups,
    check_experts,
    check_heads,
    check_layers,
    check_batch,
    check_interleaving,
    check_zero,
)


def broken_rules(plan: Plan) -> Iterator[Violation]:
    """Each rule that the plan breaks, with why and what to change."""
    for rule in RULES:
        yield from rule(plan)


def is_valid(plan: Plan) -> bool:
    """Whether it breaks none."""
    return next(broken_rules(plan), None) is None
