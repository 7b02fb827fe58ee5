"""Options that contradict each other, or that a framework does not have: wrong usage, not an invalid layout."""

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import structs

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.layout.plan import DEFAULT_ORDER, ZERO_STAGES, Framework, Plan, Schedule

MOST = 10**9
"""Of anything that is counted but parameters; a global batch in tokens is the largest."""


@dataclass(frozen=True)
class Contradiction:
    """What was said, and what to say instead."""

    said: str
    remedy: str = "leave it out"


def refuse_contradictions(plan: Plan) -> Plan:
    """The plan itself.

    Raises:
        InputError: if its options contradict each other, or its framework does not have them.
    """
    for find in (_too_large, _in_order, _of_other_frameworks, _of_deepspeed, _in_schedule, _in_memory):
        for found in find(plan):
            raise InputError(found.said, remedy=found.remedy)
    return plan


def _too_large(plan: Plan) -> Iterator[Contradiction]:
    for field in structs.fields(plan):
        size = getattr(plan, field.name)
        if isinstance(size, int) and size > MOST and "params" not in field.name:
            yield Contradiction(f"--{field.name.replace('_', '-')} {size} is more than anybody has", "say what is meant")


def _in_order(plan: Plan) -> Iterator[Contradiction]:
    if sorted(plan.axis_order) != sorted(DEFAULT_ORDER.split("-")):
        yield Contradiction(
            f"--order {plan.order} is not made of tp, cp, ep, dp and pp, each at most once",
            f"write it like {DEFAULT_ORDER}, the fastest axis first",
        )


def _of_other_frameworks(plan: Plan) -> Iterator[Contradiction]:
    given = {
        "--order": (plan.order is not None, Framework.MEGATRON),
        "--etp": (plan.etp is not None, Framework.MEGATRON),
        "--dp-replicate": (plan.dp_replicate > 1, Framework.TORCHTITAN),
    }
    for option, (is_given, owner) in given.items():
        if is_given and plan.framework is not owner:
            yield Contradiction(f"{option} is an option of {owner.value}, not of {plan.framework.value}")


def _of_deepspeed(plan: Plan) -> Iterator[Contradiction]:
    if plan.framework is Framework.DEEPSPEED and plan.cp > 1 and plan.tp * plan.pp > 1:
        yield Contradiction(
            "pardbg does not know how DeepSpeed places ranks with sequence parallelism (--cp) beside tp or pp",
            "leave out --cp, or --tp and --pp",
        )


def _in_schedule(plan: Plan) -> Iterator[Contradiction]:
    if plan.schedule is Schedule.INTERLEAVED and plan.virtual_stages == 1:
        yield Contradiction("an interleaved schedule has several stages on a rank", "give --virtual-stages")
    if plan.schedule not in {None, Schedule.INTERLEAVED} and plan.virtual_stages > 1:
        yield Contradiction(f"--virtual-stages {plan.virtual_stages} is for an interleaved schedule", "leave out --schedule")


def _in_memory(plan: Plan) -> Iterator[Contradiction]:
    known = ZERO_STAGES[plan.framework]
    if plan.zero is not None and plan.zero not in known:
        stages = " or ".join(map(str, known))
        yield Contradiction(f"--zero {plan.zero}: {plan.framework.value} is {stages} here", "leave it out for what is usual")
    if (plan.expert_params or 0) > (plan.params or 0):
        yield Contradiction(
            "--expert-params are a part of --params, and more than all of them", "give --params, experts included"
        )
