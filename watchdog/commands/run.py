"""`pardbg run`: starts a job so that every later scan sees more of it."""

import contextlib

import click

from pardbg.watchdog.errors import InputError


@click.command(
    context_settings={"allow_interspersed_args": False},  # the options behind the command's name are the command's
    epilog="""\b
Examples:
  pardbg run -- torchrun --nproc-per-node 8 train.py --lr 3e-4
  pardbg run --job llama-7b -- srun --ntasks-per-node 8 python train.py
  pardbg run -- mpirun -np 16 python train.py
  pardbg run -- python -m torch.distributed.run --nproc-per-node 8 train.py
  pardbg run -- bash train.sh
  pardbg run --print-env

\b
In an sbatch script, before srun:
  set -a; eval "$(pardbg run --job "$SLURM_JOB_NAME" --print-env)"; set +a

\b
Other ways: `import pardbg.probe` at the top of the training script.
Switch the probe off: PARDBG_PROBE=0 pardbg run -- torchrun train.py
""",
)
@click.option("--job", metavar="NAME", help="The job's name for `pardbg scan --job`; a new one if not given.")
@click.option(
    "--print-env", "is_printed", is_flag=True, help="Print what would be set, and which of your values stay; start nothing."
)
@click.option("--json", "as_json", is_flag=True, help="With --print-env: one JSON object.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[--] CMD...")
def run(job: str | None, words: tuple[str, ...], *, is_printed: bool, as_json: bool) -> None:
    """Start a job as it is, with an environment in which each rank keeps what a scan needs.

    No process of pardbg stays: CMD takes its place, with the same process number, signals, descriptors and exit code. It gets
    a name (PARDBG_JOB), PyTorch's flight recorder with dumps in a folder of the job, and the probe, through PYTHONPATH. What is
    set already stays as it is. Folders of ranks that ended a week ago, and of jobs of a month ago, are removed.
    """
    from pardbg.watchdog.run.launch import launch, prepare  # noqa: PLC0415 - `--help` does not wait for it
    from pardbg.watchdog.run.printing import render_json, render_lines  # noqa: PLC0415

    if as_json and not is_printed:
        raise InputError("--json says how to print", remedy="give it with --print-env")
    prepared = prepare(job, words)
    if is_printed:
        for warning in prepared.warnings:
            _say(f"warning: {warning}")
        text = (render_json if as_json else render_lines)(prepared.plan)
        click.echo(text.encode(errors="surrogateescape"), nl=False)
        return
    if not words:
        raise InputError("no command to run", remedy="for example: pardbg run -- torchrun --nproc-per-node 8 train.py")
    launch(prepared, words, _say)


def _say(line: str) -> None:
    """A terminal that is gone keeps no job from starting."""
    with contextlib.suppress(OSError):
        click.echo(f"pardbg: {line}", err=True)
