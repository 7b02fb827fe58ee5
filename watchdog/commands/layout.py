"""`pardbg layout`: checks a parallel layout before the job is submitted."""

import math
from typing import Any

import click

from pardbg.watchdog.commands.output_options import screen_width
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.members import MAX_WORLD_SIZE

SIZE = click.IntRange(min=1)
EXIT_INVALID = 3


MOST_PARAMETERS = 10**15
_SCALES = {"M": 1e6, "B": 1e9, "T": 1e12}


def read_count(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """The whole number that ``70e9``, ``70B`` or ``350M`` means."""
    if value is None:
        return None
    text = value.strip().upper()
    scale = _SCALES.get(text[-1:], 1.0)
    try:
        count = float(text[:-1] if scale > 1 else text) * scale
    except ValueError:
        count = math.nan
    if not 1 <= count <= MOST_PARAMETERS:
        raise click.BadParameter(f"{value!r} is no number of parameters; write 70e9 or 70B")
    return round(count)


@click.command(
    epilog="""\b
Examples:
  pardbg layout --world 512 --tp 8 --pp 4
  pardbg layout --world 512 --tp 8 --pp 4 --ep 8 --etp 1 --experts 64 --rank 37
  pardbg layout --world 64 --tp 8 --pp 2 --layers 80 --heads 64 --kv-heads 8 \\
    --global-batch 512 --micro-batch 1 --params 70B
  pardbg layout --world 256 --framework torchtitan --tp 4 --ep 16 --json
"""
)
@click.option(
    "--world", "world_size", type=click.IntRange(1, MAX_WORLD_SIZE), required=True, metavar="N", help="Number of ranks."
)
@click.option("--tp", type=SIZE, metavar="N", default=1, help="Tensor parallel.")
@click.option("--pp", type=SIZE, metavar="N", default=1, help="Pipeline parallel: stages.")
@click.option("--cp", type=SIZE, metavar="N", default=1, help="Context parallel; with deepspeed: sequence parallel (Ulysses).")
@click.option("--dp", type=SIZE, metavar="N", help="Data parallel; by default what the others leave.")
@click.option(
    "--dp-replicate", type=SIZE, metavar="N", default=1, help="torchtitan: replicas of what is sharded, a part of dp."
)
@click.option("--ep", type=SIZE, metavar="N", help="Expert parallel.")
@click.option("--etp", type=SIZE, metavar="N", help="megatron: tensor parallel of experts; by default tp.")
@click.option("--order", metavar="tp-cp-ep-dp-pp", help="megatron: axes of the ranks, the fastest first.")
@click.option(
    "--framework",
    type=click.Choice(["megatron", "torchtitan", "deepspeed"]),
    default="megatron",
    show_default=True,
    help="Whose order of ranks.",
)
@click.option(
    "--gpus-per-node", type=SIZE, metavar="N", default=8, show_default=True, help="Ranks fill one node after the other."
)
@click.option("--layers", type=SIZE, metavar="N", help="Of the model.")
@click.option("--heads", type=SIZE, metavar="N", help="Attention heads.")
@click.option("--kv-heads", type=SIZE, metavar="N", help="Heads of keys and values (query groups).")
@click.option("--experts", type=SIZE, metavar="N", help="Experts of a layer.")
@click.option(
    "--global-batch", type=SIZE, metavar="N", help="Samples of a step, all ranks together (or tokens, as --micro-batch)."
)
@click.option("--micro-batch", type=SIZE, metavar="N", help="Samples of a micro-batch on one data-parallel rank.")
@click.option(
    "--micro-batches",
    type=SIZE,
    metavar="N",
    help="Of one pass through the pipeline; follows from the batch but for torchtitan.",
)
@click.option("--virtual-stages", type=SIZE, metavar="N", default=1, help="Stages of the pipeline on each rank.")
@click.option(
    "--schedule", type=click.Choice(["gpipe", "1f1b", "interleaved", "zb-h1"]), help="Of the pipeline; by default 1f1b."
)
@click.option("--params", callback=read_count, metavar="N", help="Parameters of the model, experts included: 70e9 or 70B.")
@click.option("--expert-params", callback=read_count, metavar="N", help="Those of them that are in experts.")
@click.option(
    "--zero", type=click.IntRange(0, 3), metavar="0-3", help="What is sharded: by default 1 (the optimizer); torchtitan's is 3."
)
@click.option("--rank", type=click.IntRange(min=0), metavar="R", help="Say where this rank stands and who is in its groups.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object (pardbg.layout/1).")
@click.pass_context
def layout(context: click.Context, /, *, rank: int | None, as_json: bool, **sizes: Any) -> None:
    """Check a parallel layout: what cannot work and what would, who is in which group, and what it costs.

    Only what is given is checked; nothing is looked up and no GPU is needed. Of the layouts that work, the nearest change the
    fewest options; of those, the ones with the fewest warnings; of those, the ones whose sizes change by the smallest factor.
    Exit code: 0 valid, 3 invalid.
    """
    from pardbg.watchdog.layout.contradictions import refuse_contradictions  # noqa: PLC0415 - `--help` does not wait for it
    from pardbg.watchdog.layout.examining import examine_layout  # noqa: PLC0415
    from pardbg.watchdog.layout.plan import as_plan  # noqa: PLC0415
    from pardbg.watchdog.outputs.as_json import render_layout_json  # noqa: PLC0415
    from pardbg.watchdog.outputs.layout_text import render_layout  # noqa: PLC0415

    if rank is not None and rank >= sizes["world_size"]:
        raise InputError(f"--rank {rank}: the ranks are 0 to {sizes['world_size'] - 1}", remedy="name one of them")
    report = examine_layout(refuse_contradictions(as_plan(sizes)), rank)
    click.echo(render_layout_json(report) if as_json else render_layout(report, width=screen_width()), nl=False)
    context.exit(0 if report.valid else EXIT_INVALID)
