"""`pardbg bench accuracy`: how often the right rank and cause are named, and how often somebody innocent is."""

import sys
from pathlib import Path

import click
import msgspec

from pardbg.watchdog.commands.progress import show_progress
from pardbg.watchdog.errors import InputError

SIZES, SMALL = ("16", "512", "4096"), "16"


@click.command(
    epilog="""\b
Examples:
  pardbg bench accuracy
  pardbg bench accuracy --jobs 20 --scale 16 --scale 512 --readme README.md
"""
)
@click.option("--jobs", type=click.IntRange(min=2), default=4, show_default=True, help="Jobs of each case of the casebook.")
@click.option(
    "--scale",
    "sizes",
    type=click.Choice(SIZES),
    multiple=True,
    default=(SMALL,),
    show_default=True,
    help="World size of the simulated faults. Repeatable; 512 takes minutes, 4096 a quarter of an hour.",
)
@click.option("--no-peer", is_flag=True, help="Do not run torchfrtrace on the same dumps.")
@click.option(
    "--readme", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Put the table between its markers."
)
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON.")
def accuracy(jobs: int, sizes: tuple[str, ...], readme: Path | None, *, no_peer: bool, as_json: bool) -> None:
    """Diagnose jobs whose truth is known: public reports rebuilt as files, and simulated faults.

    Half of the casebook's jobs are held out: other draws of the same cases, not tuned on. Where torch is installed,
    torchfrtrace reads the same dumps; of the casebook's jobs only those that left dumps are asked.
    """
    from pardbg.watchdog.bench.accuracy import measure_accuracy  # noqa: PLC0415 - `--help` does not wait for it
    from pardbg.watchdog.bench.accuracy_table import into_readme, write_summary, write_table  # noqa: PLC0415

    with show_progress(sys.stderr) as progress:
        scores = list(measure_accuracy(progress, seeds=jobs, sizes=sorted(map(int, sizes)), has_peer=not no_peer))
    if readme is not None:
        try:
            readme.write_text(into_readme(readme.read_text(encoding="utf-8"), write_summary(scores)), encoding="utf-8")
        except InputError as error:
            raise click.UsageError(f"{readme}: {error}: {error.remedy}") from error
    click.echo(msgspec.json.encode(scores).decode() if as_json else "\n".join(write_table(scores)))
