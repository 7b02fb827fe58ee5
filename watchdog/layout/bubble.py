"""How much of a step a pipeline's stages stand idle while it fills and drains."""

from math import ceil

from pardbg.watchdog.layout.plan import Framework, Plan, Schedule


def bubble_ratio(plan: Plan) -> float | None:
    """Idle time over the time of a step (0-1), stages being equal; None where the number of micro-batches is not known.

    With p stages and m micro-batches: (p-1)/(m+p-1) for GPipe and 1F1B, (p-1)/(vm+p-1) interleaved with v stages a rank
    (Narayanan et al. 2021), (p-1)/(3m+p-1) for ZB-H1, whose bubble is a third of 1F1B's where forward, backward for inputs and
    backward for weights take equally long (Qi et al. 2023).
    """
    if plan.pp == 1:
        return 0.0
    count = plan.pipeline_micro_batches
    if count is None:
        return None
    return (plan.pp - 1) / (_shortening(plan) * count + plan.pp - 1)


def why_unknown(plan: Plan) -> str | None:
    """What must be given for the bubble to be known; None where it is."""
    if bubble_ratio(plan) is not None:
        return None
    batch = {"--global-batch": plan.global_batch, "--micro-batch": plan.micro_batch}
    missing = ["--micro-batches"] if plan.framework is Framework.TORCHTITAN else [name for name in batch if batch[name] is None]
    if missing:
        return f"give {' and '.join(missing)}"
    return "the ranks cannot be placed" if plan.data_size is None else "the batch makes no whole number of micro-batches"


def micro_batches_needed(plan: Plan, ratio: float) -> int:
    """The least number of micro-batches with which the bubble is no more than ``ratio``."""
    return ceil(round((plan.pp - 1) * (1 / ratio - 1) / _shortening(plan), 6))  # rounded: 0.2 is no exact number


def _shortening(plan: Plan) -> int:
    """How many times shorter than 1F1B's the bubble is."""
    return {Schedule.INTERLEAVED: plan.virtual_stages, Schedule.ZB_H1: 3}.get(plan.pipeline_schedule, 1)
