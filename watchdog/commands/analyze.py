"""`pardbg analyze PATH...`: who is to blame, from files."""

import sys
from pathlib import Path

import click

from pardbg.watchdog.commands.output_options import COURSE_CHARACTERS, Destinations, output_options
from pardbg.watchdog.commands.progress import show_progress


def read_paths(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> tuple[Path, ...]:
    """Takes paths as they are, but an empty one: that is a variable nobody set, not the current folder."""
    if not all(value.strip() for value in values):
        raise click.BadParameter("an empty path: name the files or the folder")
    return tuple(map(Path, values))


@click.command(
    epilog="""\b
Examples:
  pardbg analyze /shared/dumps/job-1234
  pardbg analyze dumps/ stacks/ job.json --html report.html
  pardbg analyze dumps/ --json | jq .verdict.claim
"""
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, callback=read_paths)
@output_options
@click.pass_context
def analyze(context: click.Context, paths: tuple[Path, ...], destinations: Destinations) -> None:
    """Say which rank of a job is to blame, from the files it left.

    PATH is a file or a folder with Flight Recorder dumps (pickle or JSON, any version), py-spy stacks, rank logs and job.json,
    kernel logs, answers of NCCL's RAS, step traces and profiles, MoE routing counts, in any mixture; files are recognised by
    content. Exit code: 0 healthy, 3 a fault was found, 4 undetermined.
    """
    from pardbg.watchdog.commands.analysis import InterruptedAnalysis, diagnose_paths  # noqa: PLC0415 - not for `--help`
    from pardbg.watchdog.correlators.layer_health import find_layer_health  # noqa: PLC0415

    try:
        with show_progress(sys.stderr) as progress:
            diagnosed = diagnose_paths(paths, progress)
    except InterruptedAnalysis as interrupted:
        destinations.publish(interrupted.report)
        raise click.Abort from interrupted
    layers = find_layer_health(diagnosed.situation, COURSE_CHARACTERS) if destinations.has_files else ()
    context.exit(destinations.publish(diagnosed.report, layers))
