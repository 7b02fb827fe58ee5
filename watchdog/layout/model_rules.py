"""What a layout must divide of the model and of the batch. Only what was given is checked."""

from collections.abc import Iterator

from pardbg.watchdog.layout.divisors import fitting, multiples_around
from pardbg.watchdog.layout.plan import Framework, Plan
from pardbg.watchdog.layout.words import invalid
from pardbg.watchdog.model.layout_report import LayoutRule, Violation


def check_experts(plan: Plan) -> Iterator[Violation]:
    """Every rank holds as many experts as the others."""
    if plan.experts is not None and plan.experts % plan.expert_size:
        yield invalid(
            LayoutRule.EXPERTS,
            f"{plan.experts} experts do not share out evenly over ep {plan.expert_size}",
            f"--ep {fitting(plan.expert_size, plan.experts)}",
        )


def check_heads(plan: Plan) -> Iterator[Violation]:
    """Ranks of a tp group have equally many heads, also of keys and values. DeepSpeed splits them unevenly."""
    if plan.framework is Framework.DEEPSPEED:
        return
    for name, count in (("attention heads", plan.heads), ("heads of keys and values", plan.kv_heads)):
        if count is not None and count % plan.tp:
            yield invalid(LayoutRule.HEADS, f"tp {plan.tp} does not divide {count} {name}", f"--tp {fitting(plan.tp, count)}")


def check_layers(plan: Plan) -> Iterator[Violation]:
    """Megatron's stages are equal unless told otherwise; elsewhere every stage has at least a layer."""
    stages = plan.pp * plan.virtual_stages
    if plan.layers is None:
        return
    of_what = f"{stages} stages (pp {plan.pp} x {plan.virtual_stages})" if plan.virtual_stages > 1 else f"pp {stages}"
    if plan.layers < stages:
        yield invalid(LayoutRule.LAYERS, f"{plan.layers} layers are too few for {of_what}", "a smaller --pp")
    elif plan.layers % stages and plan.framework is Framework.MEGATRON:
        yield invalid(
            LayoutRule.LAYERS,
            f"{plan.layers} layers do not share out evenly over {of_what}",
            f"{fitting(stages, plan.layers)} stages in all, or unequal ones (--decoder-first-pipeline-num-layers)",
        )


def check_batch(plan: Plan) -> Iterator[Violation]:
    """Micro-batches on all data-parallel ranks make up the global batch."""
    if plan.global_batch is None or plan.data_size is None:
        return
    micro, passes = plan.micro_batch or 1, plan.micro_batches or 1
    at_once = micro * passes * plan.data_size
    parts = [f"dp {plan.data_size}"]
    parts += [f"micro-batches of {micro}"] if plan.micro_batch is not None else []
    parts += [f"{passes} of them"] if passes > 1 else []
    if plan.global_batch % at_once:
        yield invalid(
            LayoutRule.BATCH,
            f"a global batch of {plan.global_batch} is no multiple of {at_once} ({', '.join(parts)})",
            f"--global-batch {multiples_around(plan.global_batch, at_once)}",
        )
    elif _is_step_of_one_pass(plan) and plan.global_batch != at_once:
        yield invalid(
            LayoutRule.BATCH,
            f"a global batch of {plan.global_batch} is not {plan.micro_batches} micro-batches of {micro} on {parts[0]}",
            f"leave out --micro-batches: they are {plan.global_batch // (micro * plan.data_size)}",
        )


def _is_step_of_one_pass(plan: Plan) -> bool:
    """Whether the number of micro-batches follows from the batch, and was given nevertheless. torchtitan's does not follow."""
    return plan.framework is not Framework.TORCHTITAN and plan.micro_batches is not None and plan.micro_batch is not None


def check_zero(plan: Plan) -> Iterator[Violation]:
    """DeepSpeed's pipelines need their gradients whole."""
    if plan.framework is Framework.DEEPSPEED and plan.pp > 1 and plan.zero_stage > 1:
        yield invalid(
            LayoutRule.ZERO, f"DeepSpeed has no pipeline (pp {plan.pp}) with ZeRO {plan.zero_stage}", "--zero 1, or no --pp"
        )


def check_interleaving(plan: Plan) -> Iterator[Violation]:
    """Megatron interleaves whole rounds of micro-batches, one for each stage, and only where there is a pipeline."""
    if plan.framework is not Framework.MEGATRON or plan.virtual_stages == 1:
        return
    count = plan.pipeline_micro_batches
    if plan.pp == 1:
        yield invalid(
            LayoutRule.INTERLEAVING, "stages are interleaved where there is no pipeline", "leave out --virtual-stages"
        )
    elif count is not None and count % plan.pp:
        yield invalid(
            LayoutRule.INTERLEAVING,
            f"an interleaved schedule takes micro-batches in rounds of pp {plan.pp}, and {count} are no multiple of it",
            f"{multiples_around(count, plan.pp)} micro-batches, by --global-batch or --micro-batch",
        )
