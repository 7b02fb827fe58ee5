"""`pardbg bench`: speed and memory on this machine, of files and of a scan of many nodes."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from pardbg.watchdog.commands.bench_accuracy import accuracy
from pardbg.watchdog.commands.progress import show_progress

if TYPE_CHECKING:
    from pardbg.watchdog.bench.speed import Row

SIZES, SMALL = ("16", "512", "4096", "32768"), "512"


@click.group(
    invoke_without_command=True,
    epilog="""\b
Examples:
  pardbg bench
  pardbg bench --json > bench.json
  pardbg bench --scale 4096 --scale 32768
  pardbg bench accuracy
""",
)
@click.option(
    "--scale",
    "sizes",
    type=click.Choice(SIZES),
    multiple=True,
    default=(SMALL,),
    show_default=True,
    help="Ranks of a simulated job that is scanned. Repeatable; 32768 take some minutes, most of it to simulate them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON.")
@click.pass_context
def bench(context: click.Context, sizes: tuple[str, ...], *, as_json: bool) -> None:
    """Measure speed and memory: of `pardbg analyze`, and of what a scan of many nodes does with their answers.

    Where torch is installed, torchfrtrace reads the same files. Figures of shared machines are noisy: compare within one run.
    Takes about a minute.
    """
    if context.invoked_subcommand is not None:
        return
    from pardbg.watchdog.bench.scale import measure_scale, write_rows  # noqa: PLC0415 - `--help` does not wait for it
    from pardbg.watchdog.bench.speed import measure_speed  # noqa: PLC0415

    with show_progress(sys.stderr) as progress:
        scale = list(
            measure_scale(progress, tuple(sorted(map(int, sizes))))
        )  # first: simulating files takes memory that would count
        rows = list(measure_speed(progress))
    if as_json:
        click.echo(msgspec.json.encode([*rows, *scale]).decode())
        return
    _write_speed(rows)
    click.echo("\na scan of a simulated job, by the answers of its nodes:")
    for line in write_rows(scale):
        click.echo(line)


bench.add_command(accuracy)


def _write_speed(rows: "Sequence[Row]") -> None:
    click.echo(f"{'tool':<14}{'ranks':>6}{'entries':>9}{'wall s':>9}{'peak MB':>9}  names the rank")
    for row in rows:
        right = "yes" if row.is_right else "no"
        click.echo(f"{row.tool:<14}{row.ranks:>6}{row.entries:>9}{row.wall_s:>9.2f}{row.peak_mb:>9.1f}  {right}")
    last = [row for row in rows if (row.ranks, row.entries) == (rows[-1].ranks, rows[-1].entries)]
    if len(last) > 1:
        ours, peer = last
        times, memory = peer.wall_s / ours.wall_s, peer.peak_mb / ours.peak_mb
        click.echo(f"{peer.tool} took {times:.0f} times as long and {memory:.1f} times the memory")
