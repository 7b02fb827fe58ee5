"""`pardbg bench`: speed and memory on this machine."""

import sys

import click
import msgspec

from pardbg.watchdog.commands.progress import show_progress


@click.command(
    epilog="""\b
Examples:
  pardbg bench
  pardbg bench --json > bench.json
"""
)
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON.")
def bench(as_json: bool) -> None:  # noqa: FBT001 - a flag of the command line
    """Measure speed and memory of `pardbg analyze`, with torchfrtrace on the same files where torch is installed.

    Figures of shared machines are noisy: compare within one run. Takes about a minute.
    """
    from pardbg.watchdog.bench.speed import measure_speed  # noqa: PLC0415 - `--help` does not wait for it

    with show_progress(sys.stderr) as progress:
        rows = list(measure_speed(progress))
    if as_json:
        click.echo(msgspec.json.encode(rows).decode())
        return
    click.echo(f"{'tool':<14}{'ranks':>6}{'entries':>9}{'wall s':>9}{'peak MB':>9}  names the rank")
    for row in rows:
        right = "yes" if row.is_right else "no"
        click.echo(f"{row.tool:<14}{row.ranks:>6}{row.entries:>9}{row.wall_s:>9.2f}{row.peak_mb:>9.1f}  {right}")
    last = [row for row in rows if (row.ranks, row.entries) == (rows[-1].ranks, rows[-1].entries)]
    if len(last) > 1:
        ours, peer = last
        times, memory = peer.wall_s / ours.wall_s, peer.peak_mb / ours.peak_mb
        click.echo(f"{peer.tool} took {times:.0f} times as long and {memory:.1f} times the memory")
