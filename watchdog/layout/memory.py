"""Bytes of weights, gradients and optimizer state on a rank: training in mixed precision with Adam.

Of a parameter, in bytes: Megatron 2 + 4 + 12 (bf16 weights, fp32 gradients), DeepSpeed 2 + 2 + 12, FSDP2 4 + 4 + 8 (its shards
are the fp32 weights). ZeRO 1 shares out the optimizer, 2 gradients too, 3 weights too (Rajbhandari et al. 2020).
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from pardbg.watchdog.layout.plan import Framework, Plan
from pardbg.watchdog.model.layout_report import BytesPerRank


@dataclass(frozen=True)
class Precision:
    """Bytes of a parameter that is on one rank."""

    weights: int
    gradients: int
    optimizer: int


PRECISIONS = {
    Framework.MEGATRON: Precision(weights=2, gradients=4, optimizer=12),
    Framework.DEEPSPEED: Precision(weights=2, gradients=2, optimizer=12),
    Framework.TORCHTITAN: Precision(weights=4, gradients=4, optimizer=8),
}


@dataclass(frozen=True)
class Part:
    """Parameters of a rank, and the number of ranks that hold the same ones and may share out what belongs to them."""

    params: Fraction
    sharers: int


def bytes_per_rank(plan: Plan) -> BytesPerRank:
    """The mean over pipeline stages, rounded up. Counted as split by tp: all of the dense part, norms included."""
    parts = _parts(plan)
    if parts is None:
        return BytesPerRank()
    precision, stage = PRECISIONS[plan.framework], plan.zero_stage
    return BytesPerRank(
        weights=_total(parts, precision.weights, is_shared=stage >= 3),
        gradients=_total(parts, precision.gradients, is_shared=stage >= 2),
        optimizer=_total(parts, precision.optimizer, is_shared=stage >= 1),
    )


def why_unknown(plan: Plan) -> str | None:
    """What must be given for the bytes to be known; None where they are."""
    if plan.params is None:
        return "give --params"
    if plan.has_experts and plan.expert_params is None:
        return "give --expert-params, the part of the parameters that is in experts"
    if _tensor_split_of_experts(plan) is None:
        return "whether DeepSpeed splits experts by tp is up to its enable_expert_tensor_parallelism"
    return "the ranks cannot be placed" if _parts(plan) is None else None


def _parts(plan: Plan) -> tuple[Part, ...] | None:
    """The dense part and the experts, as far as there are any; None where one of them is not known."""
    if plan.params is None or plan.shard_size is None:
        return None
    dense = Part(Fraction(plan.params - (plan.expert_params or 0), plan.tp * plan.pp), plan.shard_size)
    if not plan.has_experts:
        return (dense,)
    split, sharers = _tensor_split_of_experts(plan), plan.expert_data_size
    if plan.expert_params is None or split is None or sharers is None:
        return None
    return dense, Part(Fraction(plan.expert_params, split * plan.expert_size * plan.pp), sharers)


def _tensor_split_of_experts(plan: Plan) -> int | None:
    """Among how many ranks one expert is split. torchtitan shares what EP leaves of tp out as it does dp: 1."""
    if plan.framework is Framework.DEEPSPEED and plan.tp > 1 and plan.has_experts:
        return None
    return plan.expert_tensor_size


def _total(parts: tuple[Part, ...], byte_count: int, *, is_shared: bool) -> int:
    return ceil(sum(part.params * byte_count / (part.sharers if is_shared else 1) for part in parts))
