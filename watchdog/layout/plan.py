"""What a user asks for: the sizes of the axes, and what of the model and the batch the layout has to divide."""

from enum import Enum
from functools import cached_property
from math import prod
from typing import Any

from msgspec import convert

from pardbg.watchdog.model.base import Noun

DEFAULT_ORDER = "tp-cp-ep-dp-pp"
"""Megatron's own; the leftmost axis is the fastest. DeepSpeed places its ranks alike."""


class Framework(str, Enum):
    """Who makes the groups."""

    MEGATRON = "megatron"
    TORCHTITAN = "torchtitan"
    DEEPSPEED = "deepspeed"


class Schedule(str, Enum):
    """In which order the stages of a pipeline work on micro-batches."""

    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"
    INTERLEAVED = "interleaved"
    ZB_H1 = "zb-h1"


ZERO_STAGES = {Framework.MEGATRON: (0, 1), Framework.TORCHTITAN: (3,), Framework.DEEPSPEED: (0, 1, 2, 3)}
"""What each can share out among data-parallel ranks: Megatron's distributed optimizer is 1, FSDP2 is 3."""


class Plan(Noun, frozen=True, kw_only=True, dict=True):
    """A layout as asked for. None: not given. ``global_batch`` and ``micro_batch`` are in samples, or both in tokens."""

    world_size: int
    framework: Framework = Framework.MEGATRON
    order: str | None = None
    tp: int = 1
    cp: int = 1
    pp: int = 1
    dp: int | None = None
    dp_replicate: int = 1
    ep: int | None = None
    etp: int | None = None
    gpus_per_node: int = 8
    layers: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    experts: int | None = None
    global_batch: int | None = None
    micro_batch: int | None = None
    micro_batches: int | None = None
    virtual_stages: int = 1
    schedule: Schedule | None = None
    params: int | None = None
    expert_params: int | None = None
    zero: int | None = None

    @cached_property
    def axis_order(self) -> tuple[str, ...]:
        """Every axis, the fastest first. Those that the order leaves out have one rank a group, and come last."""
        named = (DEFAULT_ORDER if self.order is None else self.order).split("-")
        return (*named, *(axis for axis in DEFAULT_ORDER.split("-") if axis not in named))

    @cached_property
    def has_experts(self) -> bool:
        """Whether the model has experts."""
        return any(value is not None for value in (self.ep, self.etp, self.experts, self.expert_params))

    @cached_property
    def expert_size(self) -> int:
        """Ranks among which the experts of a layer are shared out."""
        return self.ep or 1

    @cached_property
    def expert_tensor_size(self) -> int:
        """Ranks that share one expert: torchtitan's EP takes the place of TP, the others keep TP unless told otherwise."""
        return self.etp or (1 if self.framework is Framework.TORCHTITAN else self.tp)

    @cached_property
    def data_size(self) -> int | None:
        """Data-parallel ranks; None where the axes do not multiply to the world."""
        size, rest = divmod(self.world_size, self.tp * self.cp * self.pp)
        return None if rest or (self.dp is not None and self.dp != size) else size

    @cached_property
    def expert_data_size(self) -> int | None:
        """Ranks that hold the same experts; None where the expert axes do not multiply to the world."""
        copies = self.dp_replicate if self.framework is Framework.TORCHTITAN else 1
        size, rest = divmod(self.world_size, prod((self.expert_tensor_size, self.expert_size, self.pp, copies)))
        return None if rest else size

    @cached_property
    def shard_size(self) -> int | None:
        """Ranks among which ZeRO or FSDP shares out what is not an expert's."""
        return None if self.data_size is None else self.data_size // self.dp_replicate * self.cp

    @cached_property
    def zero_stage(self) -> int:
        """As given; else what large jobs run with: a sharded optimizer, and FSDP2 where there is nothing else."""
        return max(1, ZERO_STAGES[self.framework][0]) if self.zero is None else self.zero

    @cached_property
    def pipeline_schedule(self) -> Schedule:
        """As given; else 1F1B, interleaved where a rank has several stages."""
        return self.schedule or (Schedule.INTERLEAVED if self.virtual_stages > 1 else Schedule.ONE_F_ONE_B)

    @cached_property
    def pipeline_micro_batches(self) -> int | None:
        """Micro-batches of one pass through the pipeline. A step of torchtitan may be several passes, so it must be told."""
        if self.micro_batches is not None or self.framework is Framework.TORCHTITAN:
            return self.micro_batches
        if self.global_batch is None or self.micro_batch is None or self.data_size is None:
            return None
        count, rest = divmod(self.global_batch, self.micro_batch * self.data_size)
        return None if rest or not count else count


def as_plan(options: dict[str, Any]) -> Plan:
    """From values by the names of the fields, enums by their text."""
    return convert(options, Plan)
